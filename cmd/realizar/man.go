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
	return `man writes the manual page, made of what --help says of every command.

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
	{kernelsVariable, "The CPU instructions to compute with, to find out where a difference comes from."},
	{"REALIZAR_HOME", "The folder of names, of models that are not of Hugging Face's hub, and of what doctor --tune measures."},
	{"REALIZAR_CONFIG", "The file of serve's settings. Each flag of serve has a variable of its own too: REALIZAR_PORT is --port."},
	{"REALIZAR_HISTORY", "The file of the messages that were sent in chats, or off."},
	{"HF_HUB_CACHE, HF_HOME", "Where the hub's tools keep models."},
	{"HF_TOKEN", "The key for private and gated repositories of the hub."},
	{"HF_ENDPOINT", "The address of a mirror of the hub."},
	{"OLLAMA_MODELS", "Where Ollama keeps models."},
	{"HTTPS_PROXY, HTTP_PROXY, NO_PROXY", "Proxies for pull and push."},
	{"NO_COLOR", "If it is set, nothing is coloured."},
	{"COLUMNS", "The columns that help has, and what is shown on a terminal: 60 to 200."},
	{"GOMAXPROCS", "Threads that run Go at one time; --threads is what a model computes with."},
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
	m.item("0", "Success, also where the reader of the output has what it wants and goes away.")
	m.item("1", "A failure: the message on standard error says of what. For grammar and verify also: what was checked is not right.")
	m.item("2", "A command line that makes no sense.")
	m.item("130", "Interrupted by Ctrl-C. serve ends with 0 where it is told to stop.")
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
