package main

import (
	"context"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/modeltest"
)

// A screen drives a conversation as the terminal does, and collects the scrollback.
type screen struct {
	t          *testing.T
	c          *conversation
	msgs       chan tea.Msg
	scrollback string
	left       bool
}

func newScreen(t *testing.T, context int, maxTokens int) *screen {
	t.Helper()
	m, err := realizar.Open(t.Context(), modeltest.Hub(t, modeltest.Context(context)), realizar.Options{Parallel: 1})
	if err != nil {
		t.Fatal(err)
	}
	c := &conversation{ctx: t.Context(), model: m, name: "model", input: newEditor()}
	c.resize(60, 12)
	if maxTokens > 0 {
		c.generation.MaxTokens = &maxTokens
	}
	t.Cleanup(func() {
		c.stop()
		_ = m.Close()
	})
	s := &screen{t: t, c: c, msgs: make(chan tea.Msg, 100)}
	c.show = func(text string) tea.Cmd {
		s.scrollback += ansi.Strip(text) + "\n"
		return func() tea.Msg { return printedMsg{} }
	}
	s.do(c.Init())
	return s
}

// do runs a command in the background, as the program does.
func (s *screen) do(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	go func() {
		msg := cmd()
		if batch, ok := msg.(tea.BatchMsg); ok {
			for _, c := range batch {
				s.do(c)
			}
			return
		}
		select {
		case s.msgs <- msg:
		case <-s.t.Context().Done():
		}
	}()
}

// until runs the conversation until done returns true.
func (s *screen) until(done func() bool) {
	s.t.Helper()
	deadline := time.After(time.Minute)
	for !done() {
		select {
		case msg := <-s.msgs:
			s.send(msg)
		case <-deadline:
			s.t.Fatalf("the conversation stands still:\n%s", s.view())
		}
	}
}

func (s *screen) send(msg tea.Msg) {
	if _, ok := msg.(tea.QuitMsg); ok {
		s.left = true
		return
	}
	_, cmd := s.c.Update(msg)
	s.do(cmd)
}

// view returns what is redrawn, without the spaces at the ends of its rows.
func (s *screen) view() string {
	rows := strings.Split(ansi.Strip(s.c.View().Content), "\n")
	for i, row := range rows {
		rows[i] = strings.TrimRight(row, " ")
	}
	return strings.Join(rows, "\n")
}

func (s *screen) typed(text string) {
	for _, r := range text {
		s.send(tea.KeyPressMsg{Code: r, Text: string(r)})
	}
}

func (s *screen) say(text string) {
	s.typed(text)
	s.send(keyNamed("enter"))
}

func (s *screen) idle() bool { return s.c.cancel == nil }

func (s *screen) printed() bool { return !s.c.printing && len(s.c.lines) == 0 }

func TestChatRemembers(t *testing.T) {
	s := newScreen(t, 512, 6)
	s.typed("hello")
	s.send(keyNamed("alt+enter"))
	s.typed("world")
	if got := s.view(); !strings.Contains(got, "> hello\n  world") {
		t.Errorf("the screen is\n%s\nwant two lines", got)
	}
	s.send(keyNamed("enter"))
	s.until(s.idle)
	s.say("again")
	s.until(s.idle)
	var roles []string
	for _, m := range s.c.messages {
		roles = append(roles, m.Role)
	}
	if got := strings.Join(roles, " "); got != "user assistant user assistant" || s.c.messages[0].Content != "hello\nworld" {
		t.Errorf("the conversation is %v", s.c.messages)
	}
	s.send(keyNamed("up"))
	if got := s.c.input.Value(); got != "again" {
		t.Errorf("the key up brings %q back", got)
	}
	s.send(keyNamed("up"))
	s.send(keyNamed("down"))
	s.send(keyNamed("down"))
	if !s.c.input.empty() {
		t.Errorf("the key down ends at %q", s.c.input.Value())
	}
	s.until(s.printed)
	if !strings.Contains(s.scrollback, "\n> hello\n  world\n\n") || !strings.Contains(s.scrollback, "\n> again\n\n") {
		t.Errorf("the scrollback is\n%s", s.scrollback)
	}
	s.say("/clear")
	if len(s.c.messages) != 0 {
		t.Errorf("/clear left %v", s.c.messages)
	}
}

func TestChatStops(t *testing.T) {
	s := newScreen(t, 1<<16, 0)
	s.say("hi")
	s.until(func() bool { return s.c.answer.Len() > 0 })
	s.say("not yet")
	if s.idle() || !strings.Contains(s.view(), "Ctrl-C stops it") || s.c.input.Value() != "not yet" {
		t.Errorf("during an answer Enter leads to\n%s", s.view())
	}
	s.send(keyNamed("ctrl+c"))
	s.until(s.idle)
	if n := len(s.c.messages); n != 2 || s.c.messages[1].Content == "" {
		t.Errorf("what there was of the answer is not remembered: %v", s.c.messages)
	}
	s.send(keyNamed("ctrl+c"))
	if !s.c.input.empty() {
		t.Errorf("Ctrl-C leaves %q in the input", s.c.input.Value())
	}
	s.send(keyNamed("ctrl+c"))
	if s.c.leaving || !strings.Contains(s.view(), "Ctrl-D leaves") {
		t.Errorf("Ctrl-C without an answer leads to\n%s", s.view())
	}
	s.send(keyNamed("ctrl+d"))
	s.until(func() bool { return s.left })
}

func TestChatLeavesDuringAnswer(t *testing.T) {
	s := newScreen(t, 1<<16, 0)
	s.say("hi")
	s.until(func() bool { return s.c.answer.Len() > 0 })
	s.send(keyNamed("ctrl+d"))
	s.until(func() bool { return s.left })
}

func TestChatContextIsFull(t *testing.T) {
	s := newScreen(t, 64, 0)
	s.say(strings.Repeat("x", 100))
	s.until(s.idle)
	if len(s.c.messages) != 0 || s.c.input.Value() != strings.Repeat("x", 100) {
		t.Errorf("a message that does not fit leaves %v and %q", s.c.messages, s.c.input.Value())
	}
	s.until(s.printed)
	if !strings.Contains(s.scrollback, "the context 64") {
		t.Errorf("it is answered by\n%s", s.scrollback)
	}
}

// TestChatIsPrintable checks that what the model writes cannot steer the terminal.
func TestChatIsPrintable(t *testing.T) {
	s := newScreen(t, 64, 0)
	_, s.c.cancel = context.WithCancel(t.Context())
	s.c.piece(pieceMsg{event: realizar.Event{Text: "a\x1b[2Jb\r\tc"}})
	if s.c.tail != "a[2Jb    c" {
		t.Errorf("the line is %q", s.c.tail)
	}
	if s.c.answer.String() != "a\x1b[2Jb\r\tc" {
		t.Errorf("the answer is %q, want it as it came", s.c.answer.String())
	}
	s.c.finish(&realizar.Finish{Reason: realizar.FinishStop})
	if want := (chat.Message{Role: "assistant", Content: "a\x1b[2Jb\r\tc"}); len(s.c.messages) != 1 || s.c.messages[0].Content != want.Content {
		t.Errorf("the conversation is %v", s.c.messages)
	}
}

// TestChatKeys checks keys that act differently if the input is not empty, or the cursor is not in
// its first or last row.
func TestChatKeys(t *testing.T) {
	s := newScreen(t, 64, 0)
	s.send(tea.PasteMsg{Content: "one\r\ntwo"})
	s.send(keyNamed("up"))
	s.send(keyNamed("home"))
	s.send(keyNamed("ctrl+d"))
	if s.c.leaving || s.c.input.Value() != "ne\ntwo" {
		t.Errorf("Ctrl-D in a text leaves %q", s.c.input.Value())
	}
	s.c.past = []string{"a\nb", "c"}
	for i, want := range []string{"c", "a\nb", "a\nb", "a\nb"} {
		s.send(keyNamed("up"))
		if got := s.c.input.Value(); got != want {
			t.Errorf("%d times up brings %q, want %q", i+1, got, want)
		}
	}
	for i, want := range []string{"a\nb", "c", "ne\ntwo", "ne\ntwo"} {
		s.send(keyNamed("down"))
		if got := s.c.input.Value(); got != want {
			t.Errorf("%d times down brings %q, want %q", i+1, got, want)
		}
	}
	s.send(tea.PasteMsg{Content: strings.Repeat("x\n", maxLines)})
	if s.c.input.Value() != "ne\ntwo" || !strings.Contains(s.view(), "10002 lines is too long") {
		t.Errorf("too many lines lead to\n%s", s.view())
	}
	s.send(keyNamed("up"))
	s.send(keyNamed("up"))
	s.send(keyNamed("up"))
	s.send(keyNamed("ctrl+c"))
	s.send(keyNamed("up"))
	if got := s.c.input.Value(); got != "c" {
		t.Errorf("after Ctrl-C the key up brings %q", got)
	}
	s.send(keyNamed("ctrl+c"))
	s.send(keyNamed("ctrl+d"))
	s.until(func() bool { return s.left })
}

// TestChatFrame checks that the renderer gets only frames that it can draw; see
// [conversation.draw].
func TestChatFrame(t *testing.T) {
	s := newScreen(t, 64, 2)
	s.until(s.printed)
	height := func() int { return strings.Count(s.c.View().Content, "\n") + 1 }
	s.send(tea.PasteMsg{Content: strings.Repeat("line\n", 20)})
	if height() > s.c.rows() || s.c.rows()+s.c.batch() > 12 {
		t.Errorf("%d rows and %d above do not fit %d", height(), s.c.batch(), 12)
	}
	stood := s.c.View().Cursor.Y
	s.send(keyNamed("ctrl+c"))
	if y := s.c.View().Cursor.Y; y != 0 || height() <= stood {
		t.Errorf("after the cursor stood in row %d it stands in %d of %d", stood, y, height())
	}
	s.say("/clear")
	s.until(s.printed)
	if height() > 2 {
		t.Errorf("after lines went to the scrollback, an empty input has %d rows", height())
	}
	before := s.c.View().Content
	s.say("/clear")
	s.until(s.printed)
	if s.c.View().Content == before || ansi.Strip(s.c.View().Content) != ansi.Strip(before) {
		t.Errorf("the frame %q became %q, want an invisible change", before, s.c.View().Content)
	}
	s.send(tea.WindowSizeMsg{Width: 1, Height: 1})
	s.say("hi")
	s.until(s.idle)
	if height() > s.c.rows() {
		t.Errorf("%d rows on the smallest terminal", height())
	}
}
