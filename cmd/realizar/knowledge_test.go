package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// knowledge is train/knowledge.json: what the demo model learned of the command line. All its
// answers take the names of commands and flags from it.
type knowledge struct {
	Commands map[string]struct {
		Examples []string
		Flags    map[string]struct {
			Short   string
			Value   string
			Example string
		}
	}
}

const trainAnew = "the demo model says otherwise than the command line: mend train/knowledge.json and what train/text says of it, then train the model anew as train/README.md tells"

// TestKnowledge checks that the demo model names all existing commands and flags with what they take,
// and no others, and that its examples are valid command lines.
func TestKnowledge(t *testing.T) {
	folder := filepath.Join("..", "..", "train")
	data, err := os.ReadFile(filepath.Join(folder, "knowledge.json"))
	if err != nil {
		t.Fatal(err)
	}
	var known knowledge
	if err := json.Unmarshal(data, &known); err != nil {
		t.Fatal(err)
	}
	taught := map[string]bool{}
	var examples []string
	for command, c := range known.Commands {
		taught[command] = true
		examples = append(examples, c.Examples...)
		for flag, f := range c.Flags {
			examples = append(examples, f.Example)
			taught[command+" "+flag+" "+f.Short+" "+f.Value] = true
		}
	}
	defined := definitions(t)
	for name := range taught {
		if !defined[name] {
			t.Errorf("%q is taught and does not exist: %s", strings.TrimSpace(name), trainAnew)
		}
	}
	for name := range defined {
		if !taught[name] {
			t.Errorf("%q exists and is not taught: %s", strings.TrimSpace(name), trainAnew)
		}
	}
	flags := map[string]bool{"--help": true, "--help-all": true}
	for name := range defined {
		for field := range strings.FieldsSeq(name) {
			if strings.HasPrefix(field, "--") {
				flags[field] = true
			}
		}
	}
	checkTexts(t, filepath.Join(folder, "text"), flags)
	phrases, err := os.ReadFile(filepath.Join(folder, "text", "flag_phrases.py"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range known.Commands {
		for flag := range c.Flags {
			if !strings.Contains(string(phrases), "\n    \""+flag+"\": (") {
				t.Errorf("flag_phrases.py has no questions about %s, so train/text ends with an error", flag)
			}
		}
	}
	checkExamples(t, examples)
}

var (
	// exampleLine matches the arguments of realizar in an example, without what the shell reads.
	exampleLine = regexp.MustCompile(`realizar ((?:'[^']*'|"[^"]*"|[^<>|)'"])*)`)
	shellWord   = regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`)
	inQuotes    = regexp.MustCompile(`'([^']*)'|"([^"]*)"`)
)

// checkExamples checks that the command lines of the examples are valid.
func checkExamples(t *testing.T, examples []string) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("serve.yaml", []byte("port: 9000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, example := range examples {
		line := exampleLine.FindStringSubmatch(example)
		if line == nil {
			t.Errorf("%q has no command line of realizar", example)
			continue
		}
		words := shellWord.FindAllString(line[1], -1)
		for i, word := range words {
			words[i] = inQuotes.ReplaceAllString(word, "$1$2")
		}
		if words[0] == "help" || words[0] == "version" {
			continue
		}
		parser, err := newParser(&grammar{}, kong.Writers(io.Discard, io.Discard))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(words); err != nil {
			t.Errorf("%q is not a valid command line: %v", example, err)
		}
	}
}

// definitions returns the commands, and each flag after its command, with its short form and what
// it takes: "run --seed -s N" or "run --raw  ".
func definitions(t *testing.T) map[string]bool {
	t.Helper()
	parser, err := newParser(&grammar{}, kong.Writers(io.Discard, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, command := range parser.Model.Leaves(false) {
		path := strings.TrimPrefix(strings.TrimPrefix(command.FullPath(), "realizar"), " ")
		all[path] = true
		for _, group := range command.AllFlags(false) {
			for _, flag := range group {
				if flag.Name == "help" || flag.Name == "help-all" {
					continue // flags of all commands
				}
				short := ""
				if flag.Short != 0 {
					short = "-" + string(flag.Short)
				}
				value := ""
				if !flag.IsBool() {
					value = flag.FormatPlaceHolder()
				}
				all[path+" --"+flag.Name+" "+short+" "+value] = true
			}
		}
	}
	return all
}

var (
	flagForm = regexp.MustCompile(`--[a-z][a-z0-9-]*[a-z0-9]`)
	// foreignFlags matches the flags of other programs that users ask for. The model answers that
	// realizar has no such flag.
	foreignFlags = regexp.MustCompile(`(?s)\n_FOREIGN = \{.*?\n\}`)
)

// checkTexts checks that all flags in the training texts exist.
func checkTexts(t *testing.T, folder string, flags map[string]bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.py"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files of text in %s: %v", len(files), folder, err)
	}
	for _, path := range files {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(path) == "check.py" {
			continue // a program with flags of its own
		}
		for _, flag := range flagForm.FindAllString(foreignFlags.ReplaceAllString(string(source), ""), -1) {
			if !flags[flag] {
				t.Errorf("%s: %s does not exist: %s", path, flag, trainAnew)
			}
		}
	}
}
