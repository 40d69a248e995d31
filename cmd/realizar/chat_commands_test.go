package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Words with a slash are no messages: known ones do what they say, others are errors.
func TestChatCommands(t *testing.T) {
	s := newScreen(t, 512, 4)
	file := filepath.Join(t.TempDir(), "talk.json")
	s.say("hello")
	s.until(s.idle)
	said := func(command, want string) {
		t.Helper()
		s.say(command)
		s.until(s.printed)
		if text := strings.Join(strings.Fields(s.scrollback+" "+s.view()), " "); !strings.Contains(text, want) {
			t.Errorf("%s says nothing of %q:\n%s", command, want, s.scrollback+s.view())
		}
		if last := len(s.c.messages) - 1; s.c.cancel != nil || last >= 0 && s.c.messages[last].Content == command {
			t.Errorf("%s was taken for a message", command)
		}
		s.c.input.Reset()
	}
	said("/help", "/save FILE")
	said("/nonsense", "there is no /nonsense; /help")
	said("/set", "/set is written as /set NAME VALUE")
	said("/set temperature 0.5", "temperature is 0.5.")
	said("/set temperature hot", "temperature is a number from 0 to 100, not")
	said("/set colour red", "there is no setting")
	said("/set max-tokens 3", "max-tokens is 3.")
	said("/set system Be brief.", "system is Be brief..")
	said("/show", "temperature 0.5")
	said("/save "+file, "3 messages are in")
	said("/clear", "The conversation is forgotten.")
	if len(s.c.messages) != 1 {
		t.Errorf("/clear left %v", s.c.messages)
	}
	said("/load "+file+".not", "no such file")
	s.say("/load " + file)
	s.until(s.printed)
	if m := s.c.messages; len(m) != 3 || m[0].Content != "Be brief." || m[1].Content != "hello" {
		t.Errorf("/load gave %v", m)
	}
	if s.c.generation.Temperature != 0.5 || *s.c.generation.MaxTokens != 3 {
		t.Errorf("the settings are %v", s.c.generation)
	}
	s.say("/usr/bin is a folder") // begins with no word
	s.until(s.idle)
	if m := s.c.messages; len(m) < 4 || m[3].Content != "/usr/bin is a folder" {
		t.Errorf("the messages are %v", m)
	}
	s.say("/bye")
	s.until(func() bool { return s.left })
}

// Enter within quotes begins a line, and sends after them.
func TestChatBlock(t *testing.T) {
	s := newScreen(t, 512, 4)
	s.say(`"""one`)
	s.say("two")
	if len(s.c.messages) > 0 {
		t.Fatalf("a block that has not ended was sent: %v", s.c.messages)
	}
	s.say(`"""`)
	s.until(s.idle)
	if m := s.c.messages; len(m) == 0 || m[0].Content != "one\ntwo" {
		t.Errorf("the messages are %v", m)
	}
}

// The messages of one chat are there for the cursor keys of the next, and for nobody else.
func TestChatHistory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "folder", "history")
	t.Setenv("REALIZAR_HISTORY", file)
	if historyFile() != file {
		t.Errorf("the file is %s", historyFile())
	}
	for _, text := range []string{"first", "of two\nlines"} {
		s := newScreen(t, 512, 4)
		s.c.history, s.c.past = file, readHistory(file)
		s.c.remember(text)
	}
	if past := readHistory(file); strings.Join(past, "|") != "first|of two\nlines" {
		t.Errorf("the history is %q", past)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	t.Setenv("REALIZAR_HISTORY", "off")
	if historyFile() != "" {
		t.Errorf("off is %s", historyFile())
	}
}
