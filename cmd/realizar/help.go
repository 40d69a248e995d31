package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Help has a short form, for --help, and a whole form, for --help-all. The short form fits a screen:
// usage, two examples, arguments and the flags with the tag common. It is the whole form if that
// fits too.

const (
	screenLines = 40 // of the short form at 80 columns
	widestProse = 100
	flagColumns = 26 // columns for the names of flags, if the width allows
)

// helpOf returns the help for --help of a command or of the program.
func helpOf(node *kong.Node, width int) string {
	whole := wholeHelp(node, width)
	if node.Type == kong.ApplicationNode || strings.Count(whole, "\n") <= screenLines {
		return whole
	}
	node = runNode(node)
	_, examples, _ := splitDetail(node.Detail)
	h := &helpText{width: width}
	h.begin(node, examples)
	h.flags("Common flags:", ungrouped(common(node)))
	h.gap()
	h.prose(pathOf(node) + " --help-all shows all flags and more help.")
	for _, other := range node.Parent.Children {
		if node.Parent.DefaultCmd == node && other != node {
			h.prose("See also " + pathOf(other) + " --help.")
		}
	}
	return h.String()
}

// wholeHelp returns the help for --help-all of a command or of the program.
func wholeHelp(node *kong.Node, width int) string {
	if node.Type == kong.ApplicationNode {
		return programHelp(node, width)
	}
	node = runNode(node)
	intro, examples, rest := splitDetail(node.Detail)
	h := &helpText{width: width}
	h.begin(node, examples)
	h.flags("Flags:", flagsOf(node))
	if len(examples) > 2 {
		h.gap()
		h.line("More examples:")
		h.examples(examples[2:])
	}
	if notes := strings.TrimSpace(intro + "\n\n" + rest); notes != "" {
		h.gap()
		h.line("Notes:")
		h.gap()
		h.paragraphs(notes)
	}
	return h.String()
}

// begin writes usage, the first two examples and the arguments.
func (h *helpText) begin(node *kong.Node, examples []string) {
	h.line("Usage: " + usageOf(node))
	h.gap()
	h.prose(node.Help)
	if len(examples) > 0 {
		h.gap()
		h.line("Examples:")
		h.examples(examples[:min(2, len(examples))])
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
}

func (h *helpText) examples(examples []string) {
	h.gap()
	for _, e := range examples {
		h.line("    " + strings.ReplaceAll(e, "\n", "\n    "))
	}
}

// runNode returns the node that runs: node, or its default subcommand.
func runNode(node *kong.Node) *kong.Node {
	if node.DefaultCmd != nil {
		return node.DefaultCmd
	}
	return node
}

// flagsOf returns the flags of a command: its own, then those of all commands.
func flagsOf(node *kong.Node) []*kong.Flag {
	var all []*kong.Flag
	for _, group := range node.AllFlags(true) {
		all = append(group, all...)
	}
	return all
}

// common returns the flags of a command that have the tag common.
func common(node *kong.Node) []*kong.Flag {
	return slices.DeleteFunc(flagsOf(node), func(f *kong.Flag) bool { return !f.Tag.Has("common") })
}

// A wholeHelpFlag is --help-all.
type wholeHelpFlag bool

// IgnoreDefault keeps the parser from resetting the flag, as for --help.
func (wholeHelpFlag) IgnoreDefault() {}

// BeforeReset writes help and exits, before the parser checks the rest of the command line.
func (wholeHelpFlag) BeforeReset(command *kong.Context) error {
	if err := writeHelp(command, wholeHelp); err != nil {
		return err
	}
	command.Exit(0)
	return nil
}

// ungrouped returns copies of flags without groups, for a single table.
func ungrouped(flags []*kong.Flag) []*kong.Flag {
	out := make([]*kong.Flag, len(flags))
	for i, f := range flags {
		copied := *f
		copied.Group = nil
		out[i] = &copied
	}
	return out
}

// programHelp returns the help of the program: a line for each command.
func programHelp(app *kong.Node, width int) string {
	h := &helpText{width: width}
	h.line("Usage: realizar COMMAND")
	h.gap()
	h.paragraphs(app.Help)
	h.gap()
	h.line("Commands:")
	var rows [][2]string
	for _, c := range commands(app) {
		rows = append(rows, [2]string{strings.TrimPrefix(pathOf(c), "realizar "), c.Help})
	}
	h.table(rows)
	h.gap()
	h.line("Flags:")
	h.table(flagRows(app.Flags))
	h.gap()
	h.prose("realizar COMMAND --help explains a command; --help-all shows all its flags.")
	return h.String()
}

// commands returns the commands that do something, in the order of their definition.
func commands(app *kong.Node) []*kong.Node { return app.Leaves(true) }

// usageOf returns the usage line of a command.
func usageOf(node *kong.Node) string {
	words := []string{pathOf(node)}
	for _, p := range node.Positional {
		words = append(words, argumentName(p))
	}
	return strings.Join(append(words, "[flags]"), " ")
}

// argumentName returns an argument as usage shows it: MODEL, [PROMPT], NAME...
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

// flagRows returns the rows of a table of flags.
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

// splitDetail splits the text of a command's Help into the part before the examples, the examples,
// and the part after them.
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

// A helpText builds help.
type helpText struct {
	b     string
	width int
}

func (h *helpText) String() string { return h.b }

func (h *helpText) line(s string) { h.b += s + "\n" }

// gap writes an empty line, unless there is one.
func (h *helpText) gap() {
	if h.b != "" && !strings.HasSuffix(h.b, "\n\n") {
		h.b += "\n"
	}
}

// prose writes a wrapped paragraph.
func (h *helpText) prose(text string) {
	for _, l := range words(text, min(h.width, widestProse)) {
		h.line(l)
	}
}

// paragraphs writes paragraphs, which empty lines separate. Indented paragraphs are written as they
// are. If one has a line that is too long, it is written as a table: each line is a name, three
// spaces and a description.
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

// table writes rows of a name and a description.
func (h *helpText) table(rows [][2]string) {
	column := 0
	for _, r := range rows {
		if n := len(r[0]); n <= max(flagColumns, h.width/4) {
			column = max(column, n)
		}
	}
	for _, r := range rows {
		first := "  " + r[0]
		if len(r[0]) > column && r[1] != "" {
			h.line(first)
			first = ""
		}
		for _, l := range hanging(first, r[1], 2+column+2, h.width) {
			h.line(l)
		}
	}
}

// flags writes tables of flags: first those without a group, under title, then the groups in order.
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

// firstSteps is the output of the program without arguments.
const firstSteps = `realizar runs open-weight language models. To begin with:

    realizar run demo "How do I serve a model?"    ask the small model that is in the program
    realizar pull hf:Qwen/Qwen3-0.6B-GGUF:Q8_0     fetch a model, 640 MB
    realizar run hf:Qwen/Qwen3-0.6B-GGUF:Q8_0      chat with it
    realizar serve hf:Qwen/Qwen3-0.6B-GGUF:Q8_0    serve it at http://127.0.0.1:8080

realizar --help lists all commands.
`

// printHelp writes help when the parser asks for it.
func printHelp(_ kong.HelpOptions, command *kong.Context) error { return writeHelp(command, helpOf) }

// writeHelp writes the help of the command that the parser has come to.
func writeHelp(command *kong.Context, help func(node *kong.Node, width int) string) error {
	node := command.Model.Node
	if selected := command.Selected(); selected != nil {
		node = selected
	}
	f, _ := command.Stdout.(*os.File)
	if _, err := fmt.Fprint(command.Stdout, help(node, textWidth(f))); err != nil {
		return helpError{err}
	}
	return nil
}
