package turn

import "strings"

// A family is a built-in description of models whose templates do not show how calls or reasoning
// are written.
type family struct {
	name string
	// The template contains all texts of with and none of without.
	with, without []string
	form          Form // fields to set; empty fields keep what Find derived
}

var families = []family{
	{
		name: "gpt-oss", with: []string{harmonyChannel, harmonyMessage, "analysis"},
		form: Form{Calls: CallForm{Syntax: SyntaxHarmony, Several: true}},
	},
	{
		name: "gemma-4", with: []string{"<|tool_call>call:", `<|"|>`},
		form: Form{
			Reasoning: ReasoningForm{Begin: "<|channel>thought\n", End: "\n<channel|>"},
			Calls: CallForm{
				Syntax: SyntaxBraces, Call: "<|tool_call>call:" + holdName + "{" + holdArguments + "}<tool_call|>",
				End: "<|tool_response>", Quote: `<|"|>`, Several: true, After: true,
			},
		},
	},
	{
		name: "function-gemma", with: []string{"<start_function_call>", "<escape>"},
		form: Form{Calls: CallForm{
			Syntax: SyntaxBraces, Call: "<start_function_call>call:" + holdName + "{" + holdArguments + "}<end_function_call>",
			Quote: "<escape>", Several: true,
		}},
	},
	{
		name: "kimi", with: []string{"<|tool_calls_section_begin|>", "<|tool_call_argument_begin|>"},
		form: Form{Calls: CallForm{
			Syntax: SyntaxJSON, Begin: "<|tool_calls_section_begin|>", End: "<|tool_calls_section_end|>",
			Call: "<|tool_call_begin|>functions." + holdName + ":" + holdIndex +
				"<|tool_call_argument_begin|>" + holdArguments + "<|tool_call_end|>",
			IDPrefix: "functions.", Several: true,
		}},
	},
	{
		name: "functionary-3.2", with: []string{">>>all", "recipient"},
		form: Form{
			Content: ContentForm{Begin: ">>>all\n"},
			Calls:   CallForm{Syntax: SyntaxJSON, Call: ">>>" + holdName + "\n" + holdArguments, Several: true},
		},
	},
	{
		name: "deepseek-3", with: []string{"<｜tool▁calls▁begin｜>", "```json"},
		form: Form{Calls: CallForm{
			Syntax: SyntaxJSON, Begin: "<｜tool▁calls▁begin｜>", End: "<｜tool▁calls▁end｜>", Separator: "\n",
			Call:    "<｜tool▁call▁begin｜>function<｜tool▁sep｜>" + holdName + "\n```json\n" + holdArguments + "\n```<｜tool▁call▁end｜>",
			Several: true,
		}},
	},
	{
		name: "lfm-2", with: []string{"List of tools: "}, without: []string{"tool_calls"},
		form: Form{Calls: CallForm{
			Syntax: SyntaxPython, Begin: "<|tool_call_start|>[", End: "]<|tool_call_end|>", Separator: ", ",
			Call: holdName + "(" + holdArguments + ")", Several: true, After: true,
		}},
	},
	{
		name: "granite-3", with: []string{"<|tool_call|>", "<|start_of_role|>"}, without: []string{"message.tool_calls", "'tool_calls'"},
		form: Form{Calls: CallForm{
			Syntax: SyntaxJSON, Begin: "<|tool_call|>[", End: "]", Separator: ", ",
			Call: `{"name": "` + holdName + `", "arguments": ` + holdArguments + "}", Several: true,
		}},
	},
	{
		name: "phi-4-mini", with: []string{"<|tool|>", "<|/tool|>"}, without: []string{"tool_calls"},
		form: Form{Calls: CallForm{
			Syntax: SyntaxJSON, Begin: "functools[", End: "]", Separator: ", ",
			Call: `{"name": "` + holdName + `", "arguments": ` + holdArguments + "}", Several: true,
		}},
	},
	{
		name: "apertus", with: []string{"<|inner_prefix|>", "<|inner_suffix|>"},
		form: Form{Reasoning: ReasoningForm{Begin: "<|inner_prefix|>", End: "<|inner_suffix|>"}},
	},
	{
		name: "llama-3", with: []string{"<|start_header_id|>", "ipython", `"parameters": `},
		form: Form{Calls: CallForm{Optional: "<|python_tag|>"}},
	},
}

// recognise returns the family of a template, or nil.
func recognise(source string) *family {
next:
	for i := range families {
		for _, text := range families[i].with {
			if !strings.Contains(source, text) {
				continue next
			}
		}
		for _, text := range families[i].without {
			if strings.Contains(source, text) {
				continue next
			}
		}
		return &families[i]
	}
	return nil
}

// apply sets the family's fields in f.
func (k *family) apply(f *Form) {
	f.Family = k.name
	if k.form.Content.Begin != "" {
		f.dropContentMarks()
		f.Content.Begin = k.form.Content.Begin
		for n := len(f.Content.Begin); n > 0; n-- { // the prompt may end with the start of the mark
			if strings.HasSuffix(f.Start, f.Content.Begin[:n]) {
				f.Start = f.Start[:len(f.Start)-n]
				f.Reasoning.Default = f.Content.Begin[:n]
				break
			}
		}
	}
	if r := k.form.Reasoning; r.End != "" {
		f.Reasoning.Begin, f.Reasoning.End = r.Begin, r.End
		f.Reasoning.Open = f.opens(f.Reasoning.Default)
	}
	switch c := k.form.Calls; {
	case c.Syntax == SyntaxHarmony:
		f.Calls, f.Content, f.Reasoning = c, ContentForm{}, ReasoningForm{}
		f.Start, f.End = harmonyStart+"assistant", ""
	case c.Syntax != SyntaxNone:
		f.Calls = c
	case c.Optional != "" && f.Calls.Syntax != SyntaxNone:
		f.Calls.Optional = c.Optional
	}
}
