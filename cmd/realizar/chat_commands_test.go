package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestChatCommands checks that a text that begins with a slash and a word is a command or an error,
// and not a message.
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
	said("/nonsense", "/nonsense is not a command; /help")
	said("/max-tokens 3", "/max-tokens is not a command; /help")
	said("/", "/ is not a command; /help")
	said("/help me", "/help takes nothing")
	said("/set", "/set takes NAME VALUE")
	said("/set temperature 0.5", "temperature is 0.5.")
	said("/set temperature hot", "temperature is a number from 0 to 100, not")
	said("/set colour red", "\"colour\" is not a setting; want one of")
	said("/set max-tokens 3", "max-tokens is 3.")
	said("/set system Be brief.", "system is Be brief..")
	said("/show", "temperature 0.5")
	said("/save "+file, "3 messages saved in")
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
	s.say("/usr/bin is a folder") // not a command, as /usr is followed by a slash
	s.until(s.idle)
	if m := s.c.messages; len(m) < 4 || m[3].Content != "/usr/bin is a folder" {
		t.Errorf("the messages are %v", m)
	}
	s.say(" /nonsense") // the space makes it a message that begins with a slash
	s.until(s.idle)
	if m := s.c.messages; len(m) < 6 || m[5].Content != "/nonsense" {
		t.Errorf("the messages are %v", m)
	}
	s.say("/bye")
	s.until(func() bool { return s.left })
}

// TestChatBlock checks that Enter inside triple quotes begins a line, and sends after them.
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

// TestChatHistory checks that the cursor keys bring back the messages of earlier chats, and that
// only the user can read them.
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
