package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
)

// chat holds a conversation on the terminal. The conversation goes into the terminal's own
// scrollback; only the line being written and the input are redrawn.
func (c *runCommand) chat(a *app, m *realizar.Model, g realizar.Generation) error {
	if _, err := m.ChatTemplate(); err != nil {
		return fmt.Errorf("this model cannot chat, but it continues a prompt given as an argument: %w", err)
	}
	ctx, leave := context.WithCancel(a.ctx)
	defer leave()
	conversation := &conversation{
		ctx: ctx, model: m, generation: g, verbose: c.Verbose,
		name: filepath.Base(c.Model), opening: c.opening(), show: scrollback,
		input: newEditor(), history: historyFile(),
	}
	conversation.past = readHistory(conversation.history)
	conversation.resize(80, 24)
	conversation.messages = conversation.opening
	_, err := tea.NewProgram(conversation, tea.WithContext(a.ctx), tea.WithoutSignalHandler(), tea.WithOutput(a.stdout)).Run()
	if a.ctx.Err() != nil {
		return context.Canceled
	}
	return err
}

// A conversation is the state of the chat: its messages, the running answer and the screen.
type conversation struct {
	ctx        context.Context // ends when the user leaves
	model      *realizar.Model
	generation realizar.Generation
	verbose    bool
	name       string
	opening    []chat.Message // messages that /clear keeps
	messages   []chat.Message

	input         editor
	past          []string // messages sent, for the cursor keys
	history       string   // the file that keeps them, or empty
	recalled      int      // how far back in past the input is; 0 for a new message
	draft         string   // the new message while the input is back in past
	hint          string   // below the input, until the next key
	width, height int

	cancel  context.CancelFunc // of the running answer, or nil
	thought strings.Builder    // before the answer
	answer  strings.Builder    // as it will be in messages
	tail    string             // its last line, which is not in the scrollback yet

	show     func(text string) tea.Cmd // puts lines into the scrollback, then sends a printedMsg
	lines    []string                  // to be printed
	printing bool
	leaving  bool

	frame   tea.View // the redrawn part
	deepest int      // row of the cursor in a frame that may be on the screen
	since   int      // the same for frames drawn since lines were sent to the scrollback
	printed int      // how often lines were sent, modulo 64
}

// The messages in addition to those of the terminal.
type (
	pieceMsg struct { // of the answer
		event realizar.Event
		err   error
		more  <-chan pieceMsg
	}
	printedMsg struct{} // lines are in the scrollback
)

const keys = "Enter sends, Alt-Enter or Ctrl-J begins a new line. Ctrl-C stops the answer, Ctrl-D leaves, /help lists commands."

var (
	faint = lipgloss.NewStyle().Faint(true)
	bold  = lipgloss.NewStyle().Bold(true)
)

// Init implements [tea.Model].
func (c *conversation) Init() tea.Cmd {
	c.print(bold.Render(shown(c.name)), "")
	c.hint = keys
	c.draw()
	return c.flush()
}

// Update implements [tea.Model].
func (c *conversation) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var next tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		c.resize(msg.Width, msg.Height)
	case tea.PasteMsg:
		c.insert(msg.Content)
	case tea.KeyPressMsg:
		next = c.key(msg)
	case pieceMsg:
		next = c.piece(msg)
	case printedMsg:
		c.printing = false
		c.deepest = c.since
		c.printed = (c.printed + 1) % 64
	}
	c.draw()
	if c.leaving && !c.printing && len(c.lines) == 0 {
		return c, tea.Quit
	}
	return c, tea.Batch(next, c.flush())
}

// key handles a key.
func (c *conversation) key(k tea.KeyPressMsg) tea.Cmd {
	c.hint = ""
	switch name := k.String(); {
	case name == "ctrl+c":
		switch {
		case c.cancel != nil:
			c.cancel()
		case !c.input.empty():
			c.input.Reset()
			c.recalled = 0
		default:
			c.hint = "Ctrl-D leaves."
		}
	case name == "ctrl+d" && c.input.empty():
		if c.cancel != nil {
			c.end("stopped")
		}
		c.leaving = true
	case name == "ctrl+z":
		return tea.Suspend
	case name == "enter":
		return c.send()
	case name == "alt+enter", name == "shift+enter", name == "ctrl+j":
		c.insert("\n")
	case k.Text != "":
		c.insert(k.Text)
	case key.Matches(k, c.input.KeyMap.LinePrevious):
		c.vertical(k, 1)
	case key.Matches(k, c.input.KeyMap.LineNext):
		c.vertical(k, -1)
	default:
		c.input.press(k)
	}
	return nil
}

// insert puts text into the input, or shows why it cannot.
func (c *conversation) insert(text string) {
	c.hint = ""
	if err := c.input.insert(text); err != nil {
		c.hint = err.Error()
	}
}

// vertical moves the cursor by a row, or from the first or last row to the previous or next
// message, by further messages.
func (c *conversation) vertical(k tea.KeyPressMsg, further int) {
	row := c.input.row()
	c.input.press(k)
	back := c.recalled + further
	if c.input.row() != row || back < 0 || back > len(c.past) {
		return
	}
	if c.recalled == 0 {
		c.draft = c.input.Value()
	}
	c.recalled = back
	text := c.draft
	if back > 0 {
		text = c.past[len(c.past)-back]
	}
	c.input.set(text)
}

// send sends the input as a message.
func (c *conversation) send() tea.Cmd {
	text := c.input.Value()
	switch {
	case c.cancel != nil:
		c.hint = "The answer is not complete; Ctrl-C stops it."
		return nil
	case strings.TrimSpace(text) == "":
		c.hint = keys
		return nil
	case c.command(text):
		return nil
	}
	text, complete := unquote(text)
	if !complete {
		c.insert("\n")
		return nil
	}
	if strings.TrimSpace(text) == "" {
		c.hint = keys
		return nil
	}
	c.input.Reset()
	c.remember(text)
	text = unslash(text)
	lines, rest := wrap(text, c.width-len(prompt))
	for i, line := range append(lines, rest) {
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

// ask starts an answer, whose pieces arrive as messages.
func (c *conversation) ask() tea.Cmd {
	ctx, cancel := context.WithCancel(c.ctx)
	c.cancel = cancel
	c.thought.Reset()
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

// await waits for the next piece; it returns nil after the last.
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
		return nil // the user has stopped it
	case p.err != nil:
		c.fail(p.err)
		return nil
	}
	c.think(p.event.Reasoning)
	if p.event.Text != "" && c.answer.Len() == 0 && c.thought.Len() > 0 {
		c.print(faint.Render(trimmed(c.tail)), "")
		c.tail = ""
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

// think adds a piece to the thought before the answer.
func (c *conversation) think(text string) {
	if text == "" {
		return
	}
	c.thought.WriteString(text)
	complete, rest := wrap(c.tail+shown(text), c.width)
	for _, line := range complete {
		c.print(faint.Render(line))
	}
	c.tail = rest
}

// finish ends a complete answer.
func (c *conversation) finish(f *realizar.Finish) {
	switch {
	case f.Reason != realizar.FinishLength:
		c.end("")
	case c.generation.MaxTokens != nil && f.Usage.CompletionTokens >= *c.generation.MaxTokens:
		c.end(fmt.Sprintf("the answer ended at max-tokens, after %d tokens", f.Usage.CompletionTokens))
	default:
		c.end(fmt.Sprintf("the context of %d tokens is full; /clear begins a new conversation", c.model.Context()))
	}
	if c.verbose {
		c.print(faint.Render(fmt.Sprintf("prompt %d tokens, %.1f tok/s; answer %d tokens, %.1f tok/s",
			f.Usage.PromptTokens, f.PrefillRate(), f.Usage.CompletionTokens, f.DecodeRate())), "")
	}
}

// fail ends an incomplete answer. A message without any answer goes back into the input, for
// editing.
func (c *conversation) fail(err error) {
	var length *realizar.ContextError
	note := message(err)
	switch {
	case errors.Is(err, context.Canceled):
		note = "stopped"
	case errors.As(err, &length):
		note = fmt.Sprintf("the conversation is %d tokens long, the context %d; shorten the message, or begin a new conversation with /clear",
			length.Prompt, length.Context)
	}
	if c.answer.Len() == 0 {
		last := len(c.messages) - 1
		if c.input.empty() {
			c.input.set(c.messages[last].Content)
		}
		c.messages = c.messages[:last]
	}
	c.end(note)
}

// end adds the answer so far to the conversation, with a note below it.
func (c *conversation) end(note string) {
	c.stop()
	if c.answer.Len() > 0 {
		c.messages = append(c.messages, chat.Message{Role: "assistant", Content: c.answer.String(), Reasoning: c.thought.String()})
	}
	if c.tail != "" {
		c.print(trimmed(c.tail))
		c.tail = ""
	}
	if note != "" {
		c.note("[" + shown(note) + "]")
	}
	c.print("")
}

// nameColumns is where texts begin in notes of a name and a text.
const nameColumns = 17

// note prints a line of the program, wrapped: text, or a name, a tab and text.
func (c *conversation) note(line string) {
	name, text, isRow := strings.Cut(line, "\t")
	left := nameColumns
	if !isRow {
		name, text, left = "", line, 0
	}
	for _, l := range hard(hanging(name, text, left, c.width), c.width) {
		c.print(faint.Render(l))
	}
}

// stop stops the running answer.
func (c *conversation) stop() {
	if c.cancel != nil {
		c.cancel()
		c.cancel = nil
	}
}

// print queues lines for the scrollback.
func (c *conversation) print(lines ...string) { c.lines = append(c.lines, lines...) }

// resize fits the conversation into a terminal of width columns and height rows.
func (c *conversation) resize(width, height int) {
	c.width, c.height = max(8, width), max(4, height)
	c.input.resize(c.width, c.rows()-3) // without a row of the answer, an empty row, and a hint
}

// rows returns the most rows of a frame, and batch the lines that go into the scrollback at a time.
// Together they must fit the screen: the renderer moves up over both, from the end of the frame.
func (c *conversation) rows() int  { return c.height - c.batch() }
func (c *conversation) batch() int { return c.height / 4 }

// flush sends lines to the scrollback, one call at a time because calls may overtake each other.
func (c *conversation) flush() tea.Cmd {
	if c.printing || len(c.lines) == 0 {
		return nil
	}
	n := min(len(c.lines), c.batch())
	text := strings.Join(c.lines[:n], "\n")
	if text == "" {
		text = " " // nothing at all would not be printed
	}
	c.lines = c.lines[n:]
	c.printing = true
	c.since = c.frame.Cursor.Y
	return c.show(text)
}

// scrollback prints text above the frame.
func scrollback(text string) tea.Cmd {
	return tea.Sequence(tea.Println(text), func() tea.Msg { return printedMsg{} })
}

// View implements [tea.Model].
func (c *conversation) View() tea.View { return c.frame }

// draw renews the frame, and works around an error of the renderer, which cannot follow a frame
// that becomes lower than the cursor's row: it clamps the row that it remembers, and leaves rows of
// the old frame behind (https://github.com/charmbracelet/ultraviolet/pull/162). So the frame ends
// in empty rows until lines that go into the scrollback bring the renderer to its top. The renderer
// leaves the cursor there if the frame is unchanged, so something invisible at the frame's end
// changes.
func (c *conversation) draw() {
	content, cursor := c.content()
	c.deepest, c.since = max(c.deepest, cursor.Y), max(c.since, cursor.Y)
	empty := min(c.deepest, c.rows()-1) - strings.Count(content, "\n")
	content += strings.Repeat("\n", max(0, empty)) + strings.Repeat(ansi.ResetStyle, c.printed)
	c.frame = tea.NewView(content)
	c.frame.Cursor = cursor
}

// content returns the text below the scrollback and the cursor.
func (c *conversation) content() (string, *tea.Cursor) {
	if c.leaving {
		return "", tea.NewCursor(0, 0)
	}
	var rows []string
	if c.cancel != nil { // the last line of the answer, which may still grow
		if c.tail == "" && c.answer.Len() == 0 {
			rows = append(rows, faint.Render("..."))
		} else {
			rows = append(rows, trimmed(c.tail))
		}
		rows = append(rows, "")
	}
	cursor := c.input.Cursor()
	cursor.Y += len(rows)
	left := c.rows() - len(rows) - c.input.Height()
	rows = append(rows, c.input.View())
	hint := hard(words(c.hint, c.width), c.width)
	for _, line := range hint[:min(len(hint), left)] {
		rows = append(rows, faint.Render(line))
	}
	return strings.Join(rows, "\n"), cursor
}
