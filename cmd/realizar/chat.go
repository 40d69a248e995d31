package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
)

// chat holds a conversation on the terminal. The conversation goes into the
// terminal's own scrollback, only the line being written and the input are
// redrawn.
func (c *runCommand) chat(a *app, m *realizar.Model, g realizar.Generation) error {
	if _, err := m.ChatTemplate(); err != nil {
		return fmt.Errorf("no chat with this model, but it continues a prompt given as an argument: %w", err)
	}
	ctx, leave := context.WithCancel(a.ctx)
	defer leave()
	conversation := &conversation{
		ctx: ctx, model: m, generation: g, verbose: c.Verbose,
		name: filepath.Base(c.Model), opening: c.opening(), show: scrollback, width: 80, height: 24,
	}
	conversation.messages = conversation.opening
	_, err := tea.NewProgram(conversation, tea.WithContext(a.ctx), tea.WithoutSignalHandler(), tea.WithOutput(a.stdout)).Run()
	if a.ctx.Err() != nil {
		return context.Canceled
	}
	return err
}

// A conversation is the chat's state: what was said, what is being written, and
// what is on the screen.
type conversation struct {
	ctx        context.Context // ends when the user leaves
	model      *realizar.Model
	generation realizar.Generation
	verbose    bool
	name       string
	opening    []chat.Message // what /clear leaves
	messages   []chat.Message

	input         editor
	past          []string // messages sent, for the cursor keys
	recalled      int      // how far back the input is, 0: it is new
	draft         string   // what was new
	hint          string   // below the input, until the next key
	width, height int

	cancel context.CancelFunc // of the answer under way, or nil
	answer strings.Builder    // as it will stand in messages
	tail   string             // its last line, which is not in the scrollback yet

	show     func(text string) tea.Cmd // puts lines into the scrollback, then sends a printedMsg
	lines    []string                  // on their way there
	printing bool
	leaving  bool
}

// The messages beside those of the terminal.
type (
	pieceMsg struct { // of the answer
		event realizar.Event
		err   error
		more  <-chan pieceMsg
	}
	printedMsg struct{} // lines are in the scrollback
)

const (
	prompt  = "> "
	margin  = "  " // before the further rows of a message
	keys    = "Enter sends, Alt-Enter or Ctrl-J begins a new line. Ctrl-C stops the answer, Ctrl-D leaves, /clear forgets all."
	maxRows = 10 // of the input on the screen
)

var (
	faint = lipgloss.NewStyle().Faint(true)
	bold  = lipgloss.NewStyle().Bold(true)
)

// Init implements [tea.Model].
func (c *conversation) Init() tea.Cmd {
	c.print(bold.Render(shown(c.name)), "")
	c.hint = keys
	return c.flush()
}

// Update implements [tea.Model].
func (c *conversation) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var next tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		c.width, c.height = max(8, msg.Width), max(4, msg.Height)
	case tea.PasteMsg:
		c.hint = ""
		c.input.insert(msg.Content)
	case tea.KeyPressMsg:
		next = c.key(msg)
	case pieceMsg:
		next = c.piece(msg)
	case printedMsg:
		c.printing = false
	}
	if c.leaving && !c.printing && len(c.lines) == 0 {
		return c, tea.Quit
	}
	return c, tea.Batch(next, c.flush())
}

// key does what a key is for.
func (c *conversation) key(k tea.KeyPressMsg) tea.Cmd {
	c.hint = ""
	e := &c.input
	switch k.String() {
	case "ctrl+c":
		switch {
		case c.cancel != nil:
			c.cancel()
		case !e.empty():
			e.clear()
		default:
			c.hint = "Ctrl-D leaves."
		}
	case "ctrl+d":
		if c.cancel != nil {
			c.end("stopped")
		}
		c.leaving = true
	case "ctrl+z":
		return tea.Suspend
	case "enter":
		return c.send()
	case "alt+enter", "shift+enter", "ctrl+j":
		e.insert("\n")
	case "backspace", "ctrl+h":
		e.delete(e.left())
	case "delete":
		e.delete(e.right())
	case "ctrl+w", "alt+backspace", "ctrl+backspace":
		e.delete(e.wordLeft())
	case "alt+d", "ctrl+delete":
		e.delete(e.wordRight())
	case "ctrl+u":
		e.delete(e.lineStart())
	case "ctrl+k":
		e.delete(e.lineEnd())
	case "left", "ctrl+b":
		e.at = e.left()
	case "right", "ctrl+f":
		e.at = e.right()
	case "ctrl+left", "alt+left", "alt+b":
		e.at = e.wordLeft()
	case "ctrl+right", "alt+right", "alt+f":
		e.at = e.wordRight()
	case "home", "ctrl+a":
		e.at = e.lineStart()
	case "end", "ctrl+e":
		e.at = e.lineEnd()
	case "up", "ctrl+p":
		c.vertical(-1)
	case "down", "ctrl+n":
		c.vertical(1)
	default:
		e.insert(k.Text)
	}
	return nil
}

// vertical moves the cursor by a row, and from the first or the last one to the
// message sent before or after.
func (c *conversation) vertical(by int) {
	e := &c.input
	at, ok := e.vertical(by, c.inputWidth())
	e.at = at
	back := c.recalled - by
	if ok || back < 0 || back > len(c.past) {
		return
	}
	if c.recalled == 0 {
		c.draft = e.text()
	}
	c.recalled = back
	text := c.draft
	if back > 0 {
		text = c.past[len(c.past)-back]
	}
	e.clear()
	e.insert(text)
}

// send says what stands in the input.
func (c *conversation) send() tea.Cmd {
	text := c.input.text()
	switch {
	case c.cancel != nil:
		c.hint = "The answer is not complete: Ctrl-C stops it."
		return nil
	case strings.TrimSpace(text) == "":
		c.hint = keys
		return nil
	case strings.TrimSpace(text) == "/clear":
		c.input.clear()
		c.messages = c.opening
		c.print(faint.Render("The conversation is forgotten."), "")
		return nil
	}
	c.input.clear()
	c.past, c.recalled = append(c.past, text), 0
	complete, rest := wrap(text, c.inputWidth())
	for i, line := range append(complete, rest) {
		if i == 0 {
			c.print(bold.Render(prompt + line))
		} else {
			c.print(bold.Render(margin + line))
		}
	}
	c.print("")
	c.messages = append(c.messages[:len(c.messages):len(c.messages)], chat.Message{Role: "user", Content: text})
	return c.ask()
}

// ask begins an answer, whose pieces come as messages.
func (c *conversation) ask() tea.Cmd {
	ctx, cancel := context.WithCancel(c.ctx)
	c.cancel = cancel
	c.answer.Reset()
	c.tail = ""
	pieces := make(chan pieceMsg)
	events := c.model.Chat(ctx, &realizar.ChatRequest{Messages: c.messages, Generation: c.generation})
	go func() {
		defer close(pieces)
		for e, err := range events {
			select {
			case pieces <- pieceMsg{event: e, err: err, more: pieces}:
			case <-c.ctx.Done():
				return
			}
		}
	}()
	return await(pieces)
}

// await waits for the next piece; nil after the last.
func await(pieces <-chan pieceMsg) tea.Cmd {
	return func() tea.Msg {
		if p, ok := <-pieces; ok {
			return p
		}
		return nil
	}
}

// piece adds a piece to the answer.
func (c *conversation) piece(p pieceMsg) tea.Cmd {
	switch {
	case c.cancel == nil:
		return nil // it has ended for the user
	case p.err != nil:
		c.fail(p.err)
		return nil
	}
	c.answer.WriteString(p.event.Text)
	complete, rest := wrap(c.tail+shown(p.event.Text), c.width)
	c.print(complete...)
	c.tail = rest
	if f := p.event.Finish; f != nil {
		c.finish(f)
		return nil
	}
	return await(p.more)
}

// finish ends an answer that is complete.
func (c *conversation) finish(f *realizar.Finish) {
	switch {
	case f.Reason != realizar.FinishLength:
		c.end("")
	case c.generation.MaxTokens != nil && f.Usage.CompletionTokens >= *c.generation.MaxTokens:
		c.end(fmt.Sprintf("ended after %d tokens", f.Usage.CompletionTokens))
	default:
		c.end(fmt.Sprintf("the context of %d tokens is full; /clear forgets the conversation", c.model.Context()))
	}
	if c.verbose {
		c.print(faint.Render(fmt.Sprintf("prompt %d tokens, %.1f tok/s; answer %d tokens, %.1f tok/s",
			f.Usage.PromptTokens, f.PrefillRate(), f.Usage.CompletionTokens, f.DecodeRate())), "")
	}
}

// fail ends an answer that is not. A message that was not answered at all goes
// back into the input, where it can be changed.
func (c *conversation) fail(err error) {
	var length *realizar.ContextError
	note := message(err)
	switch {
	case errors.Is(err, context.Canceled):
		note = "stopped"
	case errors.As(err, &length):
		note = fmt.Sprintf("the conversation is %d tokens long, the context %d; shorten the message, or /clear forgets the conversation",
			length.Prompt, length.Context)
	}
	if c.answer.Len() == 0 {
		last := len(c.messages) - 1
		if c.input.empty() {
			c.input.insert(c.messages[last].Content)
		}
		c.messages = c.messages[:last]
	}
	c.end(note)
}

// end puts what there is of the answer into the conversation, and a note below
// it.
func (c *conversation) end(note string) {
	c.stop()
	if c.answer.Len() > 0 {
		c.messages = append(c.messages, chat.Message{Role: "assistant", Content: c.answer.String()})
	}
	if c.tail != "" {
		c.print(c.tail)
		c.tail = ""
	}
	if note != "" {
		complete, rest := wrap("["+shown(note)+"]", c.width)
		for _, line := range append(complete, rest) {
			c.print(faint.Render(line))
		}
	}
	c.print("")
}

// stop stops the answer under way.
func (c *conversation) stop() {
	if c.cancel != nil {
		c.cancel()
		c.cancel = nil
	}
}

// print puts lines on their way to the scrollback.
func (c *conversation) print(lines ...string) { c.lines = append(c.lines, lines...) }

// flush sends lines to the scrollback, one call at a time because calls may
// overtake each other, and no more than fit the screen.
func (c *conversation) flush() tea.Cmd {
	if c.printing || len(c.lines) == 0 {
		return nil
	}
	n := min(len(c.lines), max(1, c.height/2))
	text := strings.Join(c.lines[:n], "\n")
	if text == "" {
		text = " " // nothing at all would not be printed
	}
	c.lines = c.lines[n:]
	c.printing = true
	return c.show(text)
}

// scrollback puts text above what is redrawn.
func scrollback(text string) tea.Cmd {
	return tea.Sequence(tea.Println(text), func() tea.Msg { return printedMsg{} })
}

func (c *conversation) inputWidth() int { return c.width - len(prompt) - 1 }

// View implements [tea.Model].
func (c *conversation) View() tea.View {
	if c.leaving {
		return tea.NewView("")
	}
	var rows []string
	if c.cancel != nil { // the last line of the answer, which may still grow
		if c.tail == "" && c.answer.Len() == 0 {
			rows = append(rows, faint.Render("..."))
		} else {
			rows = append(rows, c.tail)
		}
		rows = append(rows, "")
	}
	lines, row, column := c.input.view(c.inputWidth(), max(1, min(maxRows, c.height-4)))
	y := len(rows) + row
	for i, line := range lines {
		if i == 0 {
			rows = append(rows, prompt+line)
		} else {
			rows = append(rows, margin+line)
		}
	}
	complete, rest := wrap(c.hint, c.width)
	for _, line := range append(complete, rest) {
		rows = append(rows, faint.Render(line))
	}
	v := tea.NewView(strings.Join(rows, "\n"))
	v.Cursor = tea.NewCursor(len(prompt)+column, y)
	return v
}
