package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
	"golang.org/x/term"
)

// Help begins with what fits a screen: usage, two examples, arguments, and the flags, or of
// many flags the common ones. The rest follows below headings.

const (
	screenLines = 40  // of the first part of help
	narrowest   = 60  // columns that help is written for at least
	widest      = 200 // columns that a table of flags takes at most
	widestProse = 100
	flagColumns = 26 // of a flag, where there is room
)

// commonFlags are those that help begins with where a command has too many for a screen, the
// most important first.
var commonFlags = []string{
	"help", "system", "max-tokens", "temperature", "seed", "json", "host", "port", "served-model-name", "api-key-file",
	"config", "context", "device", "threads", "prompt", "tokens", "runs", "concurrency", "requests", "rate", "duration",
}

// textWidth is how many columns text written to f may have: those of the terminal, those
// that the variable COLUMNS says, or 80.
func textWidth(f *os.File) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return max(narrowest, min(n, widest))
	}
	if f != nil {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return max(narrowest, min(n, widest))
		}
	}
	return 80
}

// helpOf is the help of a command, or of the program.
func helpOf(node *kong.Node, width int) string {
	if node.Type == kong.ApplicationNode {
		return programHelp(node, width)
	}
	if node.DefaultCmd != nil {
		node = node.DefaultCmd
	}
	intro, examples, rest := splitDetail(node.Detail)
	h := &helpText{width: width}
	h.line("Usage: " + usageOf(node))
	h.gap()
	h.prose(node.Help)
	if len(examples) > 0 {
		h.gap()
		h.line("Examples:")
		h.gap()
		for _, e := range examples[:min(2, len(examples))] {
			h.line("    " + strings.ReplaceAll(e, "\n", "\n    "))
		}
	}
	if len(node.Positional) > 0 {
		h.gap()
		h.line("Arguments:")
		var rows [][2]string
		for _, p := range node.Positional {
			rows = append(rows, [2]string{argumentName(p), p.Help})
		}
		h.table(rows)
	}
	var all []*kong.Flag
	for _, group := range node.AllFlags(true) {
		all = append(all, group...)
	}
	whole := &helpText{width: width, b: h.b}
	whole.flags("Flags:", all)
	if whole.lines() <= screenLines {
		h = whole
	} else {
		h = h.commonFlags(all)
	}
	if len(examples) > 2 {
		h.gap()
		h.line("More examples:")
		h.gap()
		for _, e := range examples[2:] {
			h.line("    " + strings.ReplaceAll(e, "\n", "\n    "))
		}
	}
	if notes := strings.TrimSpace(intro + "\n\n" + rest); notes != "" {
		h.gap()
		if len(examples) > 2 || h.lines() > screenLines/2 {
			h.line("Notes:")
			h.gap()
		}
		h.paragraphs(notes)
	}
	return h.String()
}

// commonFlags writes as many of the common flags as the screen has room for, and the others
// below.
func (h *helpText) commonFlags(all []*kong.Flag) *helpText {
	with := h
	var common []*kong.Flag
	for _, name := range commonFlags {
		i := slices.IndexFunc(all, func(f *kong.Flag) bool { return f.Name == name })
		if i < 0 {
			continue
		}
		more := &helpText{width: h.width, b: h.b}
		more.flags("Common flags:", ungrouped(append(common[:len(common):len(common)], all[i])))
		if more.lines() <= screenLines || len(common) == 0 {
			with, common = more, append(common, all[i])
		}
	}
	with.flags("Other flags:", slices.DeleteFunc(slices.Clone(all), func(f *kong.Flag) bool { return slices.Contains(common, f) }))
	return with
}

// ungrouped are flags that are shown in one table.
func ungrouped(flags []*kong.Flag) []*kong.Flag {
	out := make([]*kong.Flag, len(flags))
	for i, f := range flags {
		copied := *f
		copied.Group = nil
		out[i] = &copied
	}
	return out
}

// programHelp is the help of the program: a line for each command.
func programHelp(app *kong.Node, width int) string {
	h := &helpText{width: width}
	h.line("Usage: realizar COMMAND")
	h.gap()
	h.paragraphs(app.Help)
	h.gap()
	h.line("Commands:")
	var rows [][2]string
	for _, c := range commands(app) {
		rows = append(rows, [2]string{strings.TrimPrefix(c.FullPath(), "realizar "), c.Help})
	}
	h.table(rows)
	h.gap()
	h.line("Flags:")
	h.table(flagRows(app.Flags))
	h.gap()
	h.prose("realizar COMMAND --help explains a command and has examples.")
	return h.String()
}

// commands are the commands that do something, in the order in which they are defined.
func commands(app *kong.Node) []*kong.Node { return app.Leaves(true) }

// usageOf is how a command is written.
func usageOf(node *kong.Node) string {
	words := []string{pathOf(node)}
	for _, p := range node.Positional {
		words = append(words, argumentName(p))
	}
	return strings.Join(append(words, "[flags]"), " ")
}

// argumentName is an argument as usage has it: MODEL, [PROMPT], NAME...
func argumentName(p *kong.Positional) string {
	name := strings.ToUpper(p.Name)
	if p.IsCumulative() {
		name += "..."
	}
	if !p.Required {
		name = "[" + name + "]"
	}
	return name
}

// flagRows are the rows of a table of flags.
func flagRows(flags []*kong.Flag) [][2]string {
	var rows [][2]string
	for _, f := range flags {
		name := "    --" + f.Name
		if f.Short != 0 {
			name = "-" + string(f.Short) + ", --" + f.Name
			if f.Name == string(f.Short) {
				name = "-" + f.Name
			}
		}
		if !f.IsBool() && !f.IsCounter() {
			name += "=" + f.FormatPlaceHolder()
		}
		rows = append(rows, [2]string{name, f.Help})
	}
	return rows
}

// splitDetail takes the text of a command's Help apart: what is before its examples, the
// examples, and what is behind them.
func splitDetail(detail string) (intro string, examples []string, rest string) {
	intro, rest, found := strings.Cut(detail, "Examples:\n\n")
	if !found {
		return strings.TrimSpace(detail), nil, ""
	}
	for rest != "" {
		line, after, _ := strings.Cut(rest, "\n")
		text, isExample := strings.CutPrefix(line, "    ")
		if !isExample {
			break
		}
		if rest = after; len(examples) > 0 && strings.HasSuffix(examples[len(examples)-1], `\`) {
			examples[len(examples)-1] += "\n" + text
		} else {
			examples = append(examples, text)
		}
	}
	return strings.TrimSpace(intro), examples, strings.TrimSpace(rest)
}

// A helpText is help that is being written.
type helpText struct {
	b     string
	width int
}

func (h *helpText) String() string { return h.b }

func (h *helpText) lines() int { return strings.Count(h.b, "\n") }

func (h *helpText) line(s string) { h.b += s + "\n" }

// gap writes an empty line, but not two.
func (h *helpText) gap() {
	if h.b != "" && !strings.HasSuffix(h.b, "\n\n") {
		h.b += "\n"
	}
}

// prose writes a paragraph in lines.
func (h *helpText) prose(text string) {
	for _, l := range words(text, min(h.width, widestProse)) {
		h.line(l)
	}
}

// words breaks text into lines between its words.
func words(text string, width int) []string {
	var lines []string
	for _, word := range strings.Fields(text) {
		if last := len(lines) - 1; last >= 0 && len(lines[last])+1+len(word) <= width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

// paragraphs writes a text whose paragraphs are parted by empty lines. Indented ones are
// written as they are, or where a line is too long as tables: each line a name, three blanks
// and what it means.
func (h *helpText) paragraphs(text string) {
	for i, p := range strings.Split(text, "\n\n") {
		if i > 0 {
			h.gap()
		}
		p = strings.Trim(p, "\n")
		lines := strings.Split(p, "\n")
		if !strings.HasPrefix(p, "    ") {
			h.prose(p)
			continue
		}
		if !slices.ContainsFunc(lines, func(l string) bool { return len(l) > h.width }) {
			h.line(p)
			continue
		}
		var rows [][2]string
		for _, line := range lines {
			name, text, _ := strings.Cut(strings.TrimSpace(line), "   ")
			rows = append(rows, [2]string{"  " + name, text})
		}
		h.table(rows)
	}
}

// table writes rows of a name and what it means.
func (h *helpText) table(rows [][2]string) {
	column := 0
	for _, r := range rows {
		if n := len(r[0]); n <= max(flagColumns, h.width/4) {
			column = max(column, n)
		}
	}
	left := 2 + column + 2
	blank := strings.Repeat(" ", left)
	for _, r := range rows {
		first := "  " + r[0]
		if len(r[0]) > column && r[1] != "" {
			h.line(first)
			first = blank
		}
		if r[1] == "" {
			h.line(first)
			continue
		}
		for i, l := range words(r[1], max(20, h.width-left)) {
			if i == 0 {
				l = first + strings.Repeat(" ", left-len(first)) + l
			} else {
				l = blank + l
			}
			h.line(strings.TrimRight(l, " "))
		}
	}
}

// flags writes tables of flags: first those of no group below title, then the groups in their
// order.
func (h *helpText) flags(title string, flags []*kong.Flag) {
	titles := []string{title}
	byTitle := map[string][]*kong.Flag{}
	for _, f := range flags {
		title := titles[0]
		if f.Group != nil {
			title = f.Group.Title
		}
		if !slices.Contains(titles, title) {
			titles = append(titles, title)
		}
		byTitle[title] = append(byTitle[title], f)
	}
	for _, title := range titles {
		if len(byTitle[title]) > 0 {
			h.gap()
			h.line(title)
			h.table(flagRows(byTitle[title]))
		}
	}
}

// firstSteps is what the program says where it is given nothing to do.
const firstSteps = `realizar runs open-weight language models. To begin with:

    realizar run demo "How do I serve a model?"    ask the small model that is in the program
    realizar pull hf:Qwen/Qwen3-0.6B-GGUF:Q8_0     fetch a model, 640 MB
    realizar run hf:Qwen/Qwen3-0.6B-GGUF:Q8_0      chat with it
    realizar serve hf:Qwen/Qwen3-0.6B-GGUF:Q8_0    serve it at http://127.0.0.1:8080

realizar --help lists all commands.
`

// printHelp writes help where the parser is asked for it.
func printHelp(_ kong.HelpOptions, command *kong.Context) error {
	node := command.Model.Node
	if selected := command.Selected(); selected != nil {
		node = selected
	}
	f, _ := command.Stdout.(*os.File)
	if _, err := fmt.Fprint(command.Stdout, helpOf(node, textWidth(f))); err != nil {
		return helpError{err}
	}
	return nil
}
