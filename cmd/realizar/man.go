package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// manCommand is `realizar man`.
type manCommand struct{}

// Help is shown below the command's line.
func (*manCommand) Help() string {
	return `The page has the text of --help-all for every command.

Examples:

    realizar man | man -l -
    realizar man > /usr/local/share/man/man1/realizar.1`
}

// Run writes the page.
func (c *manCommand) Run(a *app) error {
	_, err := io.WriteString(a.out, manPage(a.parser.Model.Node, environment))
	return err
}

// An envVariable is an environment variable that the program reads.
type envVariable struct{ name, help string }

// environment are the variables on the manual page.
var environment = []envVariable{
	{kernelsVariable, "Instruction set for the CPU kernels, to find the cause of a difference."},
	{"REALIZAR_HOME", "The folder of short names, of models that are not from Hugging Face, and of the measurements of doctor --tune."},
	{"REALIZAR_CONFIG", "The settings file of serve. Each flag of serve also has a variable: REALIZAR_PORT is --port."},
	{"REALIZAR_HISTORY", "The file of the messages sent in chats, or off."},
	{"HF_HUB_CACHE, HF_HOME", "Where the tools of Hugging Face keep models."},
	{"HF_TOKEN", "The key for private and gated repositories of Hugging Face."},
	{"HF_ENDPOINT", "The address of a mirror of Hugging Face."},
	{"OLLAMA_MODELS", "Where Ollama keeps models."},
	{"HTTPS_PROXY, HTTP_PROXY, NO_PROXY", "Proxies for pull and push."},
	{"NO_COLOR", "If it is set, output has no colour."},
	{"COLUMNS", "The width of help and of output on a terminal: 60 to 200."},
	{"GOMAXPROCS", "Threads that run Go code at the same time; --threads sets the threads of a model."},
}

// manPage returns the manual page of app in troff, with the macros of man.
func manPage(app *kong.Node, variables []envVariable) string {
	m := &manText{}
	m.macro("TH", "REALIZAR", "1")
	m.macro("SH", "NAME")
	m.text("realizar - run and serve open-weight language models")
	m.macro("SH", "SYNOPSIS")
	for _, c := range commands(app) {
		m.macro("PP")
		m.heading = false
		m.b.WriteString("\\fB" + manEscape(pathOf(c)) + "\\fR" + manEscape(strings.TrimPrefix(usageOf(c), pathOf(c))) + "\n")
	}
	m.macro("SH", "DESCRIPTION")
	m.paragraphs(app.Help)
	m.macro("SH", "COMMANDS")
	for _, c := range commands(app) {
		m.macro("SS", pathOf(c))
		m.paragraphs(c.Help)
		intro, examples, rest := splitDetail(c.Detail)
		m.paragraphs(intro)
		if len(c.Positional) > 0 {
			for _, p := range c.Positional {
				m.item(argumentName(p), p.Help)
			}
		}
		for _, group := range c.AllFlags(true) {
			for _, row := range flagRows(group) {
				m.item(strings.TrimSpace(row[0]), row[1])
			}
		}
		if len(examples) > 0 {
			m.macro("PP")
			m.text("Examples:")
			m.example(strings.Join(examples, "\n"))
		}
		m.paragraphs(rest)
	}
	m.macro("SH", "EXIT STATUS")
	m.item("0", "Success, also if the reader of the output closes it early.")
	m.item("1", "A failure, with a message on standard error; for grammar and verify also a negative result.")
	m.item("2", "An invalid command line.")
	m.item("130", "An interrupt by Ctrl-C. serve exits with 0 when it is stopped.")
	m.macro("SH", "ENVIRONMENT")
	for _, v := range variables {
		m.item(v.name, v.help)
	}
	return m.b.String()
}

// A manText builds a manual page.
type manText struct {
	b       strings.Builder
	heading bool // nothing was written since a heading, which implies a paragraph
}

func (m *manText) macro(name string, args ...string) {
	if name == "PP" && m.heading {
		return
	}
	m.heading = name == "SH" || name == "SS"
	m.b.WriteString("." + name)
	for _, a := range args {
		fmt.Fprintf(&m.b, " \"%s\"", strings.ReplaceAll(manEscape(a), `"`, `\(dq`))
	}
	m.b.WriteString("\n")
}

func (m *manText) text(s string) {
	m.heading = false
	m.b.WriteString(manEscape(s) + "\n")
}

// item writes a name and its description.
func (m *manText) item(name, help string) {
	m.macro("TP")
	m.b.WriteString("\\fB" + manEscape(name) + "\\fR\n")
	m.text(help)
}

func (m *manText) example(s string) {
	m.b.WriteString(".PP\n.RS 4\n.nf\n")
	for line := range strings.SplitSeq(s, "\n") {
		m.text(line)
	}
	m.b.WriteString(".fi\n.RE\n")
}

func (m *manText) paragraphs(s string) {
	for p := range strings.SplitSeq(s, "\n\n") {
		switch p = strings.Trim(p, "\n"); {
		case p == "":
		case strings.HasPrefix(p, "    "):
			m.example(p)
		default:
			m.macro("PP")
			m.text(strings.Join(strings.Fields(p), " "))
		}
	}
}

// manEscape escapes what troff would interpret: backslashes, dashes, and a dot or an apostrophe at
// the beginning of a line.
func manEscape(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
