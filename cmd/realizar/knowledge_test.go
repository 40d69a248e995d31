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
		Flags map[string]struct {
			Short string
			Value string
		}
	}
}

const trainAnew = "the demo model says otherwise than the command line: mend train/knowledge.json and what train/text says of it, then train the model anew as train/README.md tells"

// TestKnowledge checks that the demo model names all existing commands and flags, and no others.
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
	for command, c := range known.Commands {
		taught[command] = true
		for flag, f := range c.Flags {
			taught[command+" "+flag+" "+f.Short] = true
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
	flags := map[string]bool{"--help": true}
	for name := range defined {
		for field := range strings.FieldsSeq(name) {
			if strings.HasPrefix(field, "--") {
				flags[field] = true
			}
		}
	}
	checkTexts(t, filepath.Join(folder, "text"), flags)
}

// definitions returns the commands, and each flag after its command: "run --seed " or "run
// --verbose -v".
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
				all[path+" --"+flag.Name+" "+short] = true
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
