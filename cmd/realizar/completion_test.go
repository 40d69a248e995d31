package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// completedLines are lines that a shell completes, with the offers: all of them in want, or one of
// them in has.
var completedLines = []struct{ line, want, has string }{
	{"realizar sho", "show", ""},
	{"realizar s", "serve show synth", ""},
	{"realizar run --dev", "--device", ""},
	{"realizar run --device ", "auto cpu cuda", ""},
	{"realizar bench serve --endp", "--endpoint", ""},
	{"realizar bench --ba", "--batch", ""},
	{"realizar bench model --ba", "--batch", ""},
	{"realizar bench s", "", "serve"},
	{"realizar completion ", "", "zsh"},
	{"realizar help be", "bench", ""},
	{"realizar run de", "", "demo"},
	{"realizar run --grammar some", "some.gbnf", ""},
	{"realizar run --max-tokens 8 --kv-c", "--kv-cache", ""},
}

// script writes the completion for a shell into a new folder with another file, and returns the
// folder and the script.
func script(t *testing.T, shell string) (folder, file string) {
	t.Helper()
	folder = t.TempDir()
	file = filepath.Join(folder, "_realizar")
	for name, text := range map[string]string{file: completion(shell, commandLine(t).Model.Node), filepath.Join(folder, "some.gbnf"): ""} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder, file
}

func offers(t *testing.T, shell, line string, got []string, want, has string) {
	t.Helper()
	text := strings.Join(got, " ")
	if has == "" && text != want || has != "" && !strings.Contains(" "+text+" ", " "+has+" ") {
		t.Errorf("%s completes %q by %q, want %q%s", shell, line, text, want, has)
	}
}

// TestBashCompletion runs the script in bash and completes lines.
func TestBashCompletion(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	folder, file := script(t, "bash")
	for _, c := range append(completedLines, struct{ line, want, has string }{"realizar run --device = c", "cpu cuda", ""}) {
		words := strings.Split(c.line, " ")
		cmd := exec.CommandContext(t.Context(), bash, append([]string{"--norc", "-c",
			`source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _realizar; printf '%s\n' "${COMPREPLY[@]}"`, file}, words...)...)
		cmd.Dir = folder
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		offers(t, "bash", c.line, strings.Fields(string(out)), c.want, c.has)
	}
}

func TestFishCompletion(t *testing.T) {
	fish, err := exec.LookPath("fish")
	if err != nil {
		t.Skip(err)
	}
	folder, file := script(t, "fish")
	t.Setenv("HOME", folder)
	for _, c := range completedLines {
		cmd := exec.CommandContext(t.Context(), fish, "--no-config", "-c", `source $argv[1]; complete -C $argv[2]`, file, c.line)
		cmd.Dir = folder
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var got []string
		for line := range strings.Lines(string(out)) {
			word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
			got = append(got, word)
		}
		offers(t, "fish", c.line, got, c.want, c.has)
	}
}

// TestZshCompletion has zsh parse the script, and checks that the script names commands and flags.
// zsh completes lines only on a terminal.
func TestZshCompletion(t *testing.T) {
	_, file := script(t, "zsh")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"#compdef realizar\n", "'--device=[Where the model runs]:value:(auto cpu cuda)'", "'--json-schema=[Constrain the text by the JSON Schema in FILE]:file:_files'",
		"'-v[Report timings and the seed on standard error]'", "'show:Describe a model on this machine'", "'bench serve')", "compadd -- bash zsh fish;",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the script has no %s", want)
		}
	}
	zsh, err := exec.LookPath("zsh")
	if err != nil {
		t.Skip(err)
	}
	if out, err := exec.CommandContext(t.Context(), zsh, "-n", file).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}

// TestNothingIsLeftOut checks that every command and flag is in every script and in the manual
// page.
func TestNothingIsLeftOut(t *testing.T) {
	app := commandLine(t).Model.Node
	man := manPage(app, environment)
	for _, c := range commands(app) {
		if !strings.Contains(man, ".SS \""+manEscape(pathOf(c))+"\"") {
			t.Errorf("the manual page leaves out %s", c.FullPath())
		}
		for _, shell := range []string{"bash", "zsh", "fish"} {
			text := completion(shell, app)
			if !strings.Contains(text, nameOf(c)) {
				t.Errorf("%s leaves out %s", shell, c.FullPath())
			}
			for _, f := range completedFlags(c) {
				name := f.long
				if shell == "fish" {
					name = "-l " + strings.TrimPrefix(name, "--")
				}
				if !strings.Contains(text, name) || !strings.Contains(man, manEscape(f.long)) && f.long != "--n" {
					t.Errorf("%s or the manual page leaves out %s of %s", shell, f.long, c.FullPath())
				}
			}
		}
	}
}

func TestManPage(t *testing.T) {
	man := manPage(commandLine(t).Model.Node, environment)
	for _, want := range []string{
		".TH \"REALIZAR\" \"1\"\n", "\n.SH \"NAME\"\n", "\n.SH \"EXIT STATUS\"\n", "\n\\fB130\\fR\n", "\\fBNO_COLOR\\fR", "\\fB\\-n, \\-\\-max\\-tokens=N\\fR\nMost tokens in the answer.",
		"\nrealizar run demo \"How do I serve a model?\"\n",
	} {
		if !strings.Contains(man, want) {
			t.Errorf("the manual page has no %q", want)
		}
	}
	known := map[string]bool{"TH": true, "SH": true, "SS": true, "PP": true, "TP": true, "RS": true, "RE": true, "nf": true, "fi": true}
	for line := range strings.Lines(man) {
		if name, isMacro := strings.CutPrefix(line, "."); isMacro {
			if name = strings.Fields(name)[0]; !known[name] {
				t.Errorf("a line would be read as a macro: %s", line)
			}
		}
	}
	if got := manEscape(`.a \b -c`); got != `\&.a \eb \-c` {
		t.Error(got)
	}
}
