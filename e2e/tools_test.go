package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

const weatherQuestion = "What is the weather in Paris?"

// object returns the schema of an object that has exactly these properties.
func object(properties map[string]any) map[string]any {
	required := make([]string, 0, len(properties))
	for name := range properties {
		required = append(required, name)
	}
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// A shape is an answer of a form that the built-in model was not trained on, so that only the
// server's grammar can make an answer fit.
type shape struct {
	Colour string `json:"colour"`
	Size   int    `json:"size"`
	Tags   []bool `json:"tags"`
	Inner  struct {
		On bool `json:"on"`
	} `json:"inner"`
}

var shapeSchema = object(map[string]any{
	"colour": map[string]any{"enum": []string{"red", "blue"}},
	"size":   map[string]any{"type": "integer", "minimum": -9, "maximum": 99},
	"tags":   map[string]any{"type": "array", "items": map[string]any{"type": "boolean"}, "minItems": 1, "maxItems": 3},
	"inner":  object(map[string]any{"on": map[string]any{"type": "boolean"}}),
})

// isShape checks that a JSON text is a shape.
func isShape(t *testing.T, text string) {
	t.Helper()
	var s shape
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil || d.More() {
		t.Fatalf("%q: %v", text, err)
	}
	if s.Colour != "red" && s.Colour != "blue" || s.Size < -9 || s.Size > 99 || len(s.Tags) < 1 || len(s.Tags) > 3 {
		t.Errorf("%q is not as the schema says", text)
	}
}

var (
	weatherTool = openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name: "get_weather", Description: openai.String("The weather of a city."), Strict: openai.Bool(true),
		Parameters: object(map[string]any{"city": map[string]any{"type": "string"}}),
	})
	paintTool = openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "paint", Strict: openai.Bool(true), Parameters: shapeSchema})
)

// weatherAsked returns a chat about the weather, to be answered with the likeliest tokens.
func weatherAsked(tools ...openai.ChatCompletionToolUnionParam) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: demo, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(weatherQuestion)}, Tools: tools, Temperature: openai.Float(0),
	}
}

// isParis checks the name and the arguments of a call of the weather tool.
func isParis(t *testing.T, name, arguments string) {
	t.Helper()
	var a struct{ City string }
	if err := json.Unmarshal([]byte(arguments), &a); err != nil || name != "get_weather" || a.City != "Paris" {
		t.Fatalf("a call %s(%s): %v", name, arguments, err)
	}
}

func TestSchema(t *testing.T) {
	s := serveDemo(t)
	for _, temperature := range []float64{0, 1, 2} {
		p := weatherAsked()
		p.Temperature, p.Seed = openai.Float(temperature), openai.Int(3)
		p.ResponseFormat = openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "shape", Description: openai.String("a shape"), Strict: openai.Bool(true), Schema: shapeSchema},
		}}
		whole, err := s.client().Chat.Completions.New(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		isShape(t, whole.Choices[0].Message.Content)
		streamed, _, err := gathered(t.Context(), s.client(), p)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := streamed.Choices[0].Message.Content, whole.Choices[0].Message.Content; got != want || whole.Choices[0].FinishReason != "stop" {
			t.Errorf("%q as a stream, %q else, %s", got, want, whole.Choices[0].FinishReason)
		}
		r := responses.ResponseNewParams{Model: demo, Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(weatherQuestion)}, Temperature: openai.Float(temperature)}
		r.Text.Format = responses.ResponseFormatTextConfigParamOfJSONSchema("shape", shapeSchema)
		response, err := s.client().Responses.New(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		isShape(t, response.OutputText())
	}
	// The names that vLLM uses.
	p := weatherAsked()
	got, err := s.client().Chat.Completions.New(t.Context(), p, option.WithJSONSet("structured_outputs", map[string]any{"choice": []string{"sunny", "rainy"}}))
	if err != nil || got.Choices[0].Message.Content != "sunny" && got.Choices[0].Message.Content != "rainy" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestTools(t *testing.T) {
	s := serveDemo(t)
	p := weatherAsked(weatherTool)
	got, err := s.client().Chat.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	c := got.Choices[0]
	if c.FinishReason != "tool_calls" || len(c.Message.ToolCalls) != 1 {
		t.Fatalf("%s", c.RawJSON())
	}
	call := c.Message.ToolCalls[0]
	isParis(t, call.Function.Name, call.Function.Arguments)
	p.Messages = append(p.Messages, c.Message.ToParam(), openai.ToolMessage(`{"temperature": 21}`, call.ID))
	told, err := s.client().Chat.Completions.New(t.Context(), p)
	if err != nil || !strings.Contains(told.Choices[0].Message.Content, "21") || told.Choices[0].FinishReason != "stop" {
		t.Errorf("%v, %v", told, err)
	}
}

// TestToolsRequired checks that calls that must be made are well-formed, whatever the model
// generates.
func TestToolsRequired(t *testing.T) {
	s := serveDemo(t)
	for _, temperature := range []float64{0, 1, 2} {
		p := weatherAsked(weatherTool, paintTool)
		p.Temperature, p.Seed = openai.Float(temperature), openai.Int(4)
		p.ToolChoice = openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: "paint"})
		stream := s.client().Chat.Completions.NewStreaming(t.Context(), p)
		var all openai.ChatCompletionAccumulator
		finished := 0
		for stream.Next() {
			if !all.AddChunk(stream.Current()) {
				t.Fatalf("%s does not go with the chunks before it", stream.Current().RawJSON())
			}
			if call, ok := all.JustFinishedToolCall(); ok {
				finished++
				isShape(t, call.Arguments)
			}
		}
		if err := stream.Err(); err != nil || finished != 1 || len(all.Choices[0].Message.ToolCalls) != 1 || all.Choices[0].FinishReason != "tool_calls" {
			t.Errorf("%d calls, %v: %+v", finished, err, all.Choices)
		}
		p.ToolChoice = openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: openai.String("required")}
		p.ParallelToolCalls = openai.Bool(false)
		whole, err := s.client().Chat.Completions.New(t.Context(), p)
		if err != nil || len(whole.Choices[0].Message.ToolCalls) != 1 {
			t.Fatalf("%v, %v", whole, err)
		}
		if f := whole.Choices[0].Message.ToolCalls[0].Function; f.Name == "paint" {
			isShape(t, f.Arguments)
		}
	}
}

func TestResponseTools(t *testing.T) {
	s := serveDemo(t)
	input := responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage(weatherQuestion, "user")}
	p := responses.ResponseNewParams{
		Model: demo, Temperature: openai.Float(0),
		Tools: []responses.ToolUnionParam{responses.ToolParamOfFunction("get_weather", object(map[string]any{"city": map[string]any{"type": "string"}}), true)},
	}
	p.Input.OfInputItemList = input
	stream := s.client().Responses.NewStreaming(t.Context(), p)
	var arguments strings.Builder
	var call responses.ResponseFunctionToolCall
	for stream.Next() {
		switch e := stream.Current().AsAny().(type) {
		case responses.ResponseFunctionCallArgumentsDeltaEvent:
			arguments.WriteString(e.Delta)
		case responses.ResponseFunctionCallArgumentsDoneEvent:
			if e.Arguments != arguments.String() {
				t.Errorf("%q, the deltas are %q", e.Arguments, arguments.String())
			}
		case responses.ResponseOutputItemDoneEvent:
			call = e.Item.AsFunctionCall()
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	isParis(t, call.Name, call.Arguments)
	whole, err := s.client().Responses.New(t.Context(), p)
	if err != nil || len(whole.Output) != 1 || whole.Output[0].Type != "function_call" || whole.Output[0].AsFunctionCall().Arguments != call.Arguments {
		t.Fatalf("%v, %v", whole, err)
	}
	done := responses.ResponseInputItemParamOfFunctionCallOutput(`{"temperature": 21}`)
	done.OfFunctionCallOutput.CallID = openai.String(call.CallID)
	p.Input.OfInputItemList = append(input, responses.ResponseInputItemParamOfFunctionCall(call.Arguments, call.CallID, call.Name), done)
	told, err := s.client().Responses.New(t.Context(), p)
	if err != nil || !strings.Contains(told.OutputText(), "21") {
		t.Errorf("%v, %v", told, err)
	}
}
