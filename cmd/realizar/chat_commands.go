package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/realizar/realizar/chat"
)

// A chatCommand is a command with a slash that a user types instead of a message.
type chatCommand struct {
	name, takes, help string
	do                func(c *conversation, argument string) (said []string, err error) // lines, perhaps of a name, a tab and a text
}

// chatCommands are the commands in the order of /help.
var chatCommands []chatCommand

func init() {
	chatCommands = []chatCommand{
		{"/help", "", "lists these commands", (*conversation).listCommands},
		{"/bye", "", "leaves, as Ctrl-D does", func(c *conversation, _ string) ([]string, error) {
			c.leaving = true
			return nil, nil
		}},
		{"/clear", "", "forgets the conversation", func(c *conversation, _ string) ([]string, error) {
			c.messages = c.opening
			return []string{"The conversation is forgotten."}, nil
		}},
		{"/set", "NAME VALUE", "sets one of " + strings.Join(settingNames(), ", "), (*conversation).set},
		{"/show", "", "shows the settings", (*conversation).showSettings},
		{"/save", "FILE", "saves the conversation as JSON", (*conversation).save},
		{"/load", "FILE", "continues a saved conversation", (*conversation).load},
	}
}

// slashWord matches a command and its argument. The name has no second slash: a path such as
// /usr/bin begins a message.
var slashWord = regexp.MustCompile(`(?s)^(/[^/\s]*)(?:\s(.*))?$`)

// unslash returns a message that begins with a space and a slash without the space, which tells it
// from a command.
func unslash(text string) string {
	if strings.HasPrefix(text, " /") {
		return text[1:]
	}
	return text
}

// command runs a message that begins with a command. It returns false for any other message.
func (c *conversation) command(text string) (isCommand bool) {
	parts := slashWord.FindStringSubmatch(text)
	if parts == nil {
		return false
	}
	word, argument := parts[1], parts[2]
	i := slices.IndexFunc(chatCommands, func(k chatCommand) bool { return k.name == word })
	if i < 0 {
		c.hint = fmt.Sprintf("%s is not a command; /help lists all, and a space before the slash sends a message", shown(word))
		return true
	}
	k := chatCommands[i]
	argument = strings.TrimSpace(argument)
	if (argument == "") != (k.takes == "") {
		c.hint = fmt.Sprintf("%s takes %s", k.name, cmp.Or(k.takes, "nothing"))
		return true
	}
	said, err := k.do(c, argument)
	if err != nil {
		c.hint = err.Error()
		return true
	}
	c.input.Reset()
	c.recalled = 0
	for _, line := range said {
		c.note(line)
	}
	if len(said) > 0 {
		c.print("")
	}
	return true
}

func (c *conversation) listCommands(string) ([]string, error) {
	var said []string
	for _, k := range chatCommands {
		said = append(said, strings.TrimSpace(k.name+" "+k.takes)+"\t"+k.help)
	}
	return append(said, `"""`+"\tbegins and ends a message of several lines", "space, slash\tbegins a message with a slash"), nil
}

// A chatSetting is a setting that /set changes and /show shows.
type chatSetting struct {
	name string
	set  func(c *conversation, value string) error
	get  func(c *conversation) string
}

var chatSettings = []chatSetting{
	number("temperature", 0, 100, func(c *conversation) *float32 { return &c.generation.Temperature }),
	number("top-p", 0, 1, func(c *conversation) *float32 { return &c.generation.TopP }),
	number("min-p", 0, 1, func(c *conversation) *float32 { return &c.generation.MinP }),
	{"top-k", func(c *conversation, value string) error {
		n, err := wholeSetting("top-k", value, 0)
		if err == nil {
			c.generation.TopK = n
		}
		return err
	}, func(c *conversation) string { return strconv.Itoa(c.generation.TopK) }},
	{"max-tokens", func(c *conversation, value string) error {
		n, err := wholeSetting("max-tokens", value, 1)
		if err == nil {
			c.generation.MaxTokens = &n
		}
		return err
	}, func(c *conversation) string {
		if c.generation.MaxTokens == nil {
			return "what the context holds"
		}
		return strconv.Itoa(*c.generation.MaxTokens)
	}},
	{"seed", func(c *conversation, value string) error {
		n, err := wholeSetting("seed", value, 0)
		if err == nil {
			c.generation.Seed = uint64(n)
		}
		return err
	}, func(c *conversation) string { return strconv.FormatUint(c.generation.Seed, 10) }},
	{"system", func(c *conversation, value string) error {
		rest := c.messages[len(c.opening):]
		c.opening = []chat.Message{{Role: "system", Content: value}}
		c.messages = append(slices.Clone(c.opening), rest...)
		return nil
	}, func(c *conversation) string {
		if len(c.opening) == 0 {
			return "none"
		}
		return c.opening[0].Content
	}},
}

func settingNames() []string {
	var names []string
	for _, s := range chatSettings {
		names = append(names, s.name)
	}
	return names
}

func number(name string, least, most float64, of func(*conversation) *float32) chatSetting {
	return chatSetting{name, func(c *conversation, value string) error {
		v, err := strconv.ParseFloat(value, 32)
		if err != nil || !(v >= least && v <= most) {
			return fmt.Errorf("%s is a number from %v to %v, not %q", name, least, most, value)
		}
		*of(c) = float32(v)
		return nil
	}, func(c *conversation) string { return strconv.FormatFloat(float64(*of(c)), 'g', -1, 32) }}
}

func wholeSetting(name, value string, least int) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < least {
		return 0, fmt.Errorf("%s is a whole number from %d, not %q", name, least, value)
	}
	return n, nil
}

func (c *conversation) set(argument string) ([]string, error) {
	name, value, _ := strings.Cut(argument, " ")
	i := slices.IndexFunc(chatSettings, func(s chatSetting) bool { return s.name == name })
	if i < 0 {
		return nil, fmt.Errorf("%.40q is not a setting; want one of %s", name, strings.Join(settingNames(), ", "))
	}
	if value = strings.TrimSpace(value); value == "" {
		return nil, fmt.Errorf("/set %s needs a value", name)
	}
	if err := chatSettings[i].set(c, value); err != nil {
		return nil, err
	}
	return []string{name + " is " + shown(chatSettings[i].get(c)) + "."}, nil
}

func (c *conversation) showSettings(string) ([]string, error) {
	said := []string{"model\t" + shown(c.name), fmt.Sprintf("context\t%d tokens", c.model.Context()), fmt.Sprintf("messages\t%d", len(c.messages))}
	for _, s := range chatSettings {
		said = append(said, s.name+"\t"+shown(s.get(c)))
	}
	return said, nil
}

// A savedMessage is a message in a file, in the form of OpenAI's API.
type savedMessage struct {
	Role      string `json:"role"`
	Content   string `json:"content"`
	Reasoning string `json:"reasoning_content,omitempty"`
}

func (c *conversation) save(file string) ([]string, error) {
	saved := []savedMessage{}
	for _, m := range c.messages {
		saved = append(saved, savedMessage{m.Role, m.Content, m.Reasoning})
	}
	data, err := json.MarshalIndent(saved, "", "  ")
	if err == nil {
		err = os.WriteFile(file, append(data, '\n'), 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, cause(err))
	}
	return []string{fmt.Sprintf("%d messages saved in %s.", len(saved), shown(file))}, nil
}

func (c *conversation) load(file string) ([]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, cause(err))
	}
	var saved []savedMessage
	if err := json.Unmarshal(data, &saved); err != nil {
		return nil, fmt.Errorf("%s is not a conversation; want a JSON list of messages, as /save writes it", file)
	}
	var messages []chat.Message
	for i, m := range saved {
		if m.Role != "user" && m.Role != "assistant" && (m.Role != "system" || i > 0) {
			return nil, fmt.Errorf("%s: message %d has the role %q; want user or assistant, or system in the first message", file, i+1, m.Role)
		}
		messages = append(messages, chat.Message{Role: m.Role, Content: m.Content, Reasoning: m.Reasoning})
	}
	c.opening = nil
	if len(saved) > 0 && saved[0].Role == "system" {
		c.opening = messages[:1:1]
	}
	c.messages = messages
	return []string{fmt.Sprintf("Loaded %d messages.", len(messages))}, nil
}

// blockQuote starts and ends a message of several lines.
const blockQuote = `"""`

// unquote removes the quotes of a message. It returns false if the closing quotes are missing.
func unquote(text string) (string, bool) {
	inside, quoted := strings.CutPrefix(strings.TrimSpace(text), blockQuote)
	if !quoted {
		return text, true
	}
	inside, ended := strings.CutSuffix(inside, blockQuote)
	return strings.Trim(inside, "\n"), ended
}

// mostHistory is how many messages the history file keeps.
const mostHistory = 1000

// historyFile returns the file that keeps messages from one chat to the next, a JSON string a line.
// The variable REALIZAR_HISTORY names another file, or is off.
func historyFile() string {
	switch file := os.Getenv("REALIZAR_HISTORY"); file {
	case "off":
		return ""
	case "":
		if aliasFile() == "" {
			return ""
		}
		return filepath.Join(filepath.Dir(aliasFile()), "history")
	default:
		return file
	}
}

// readHistory reads the last messages of a file, or none if it cannot be read.
func readHistory(file string) []string {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // it was only read
	var past []string
	for s := bufio.NewScanner(f); s.Scan(); {
		var text string
		if json.Unmarshal(s.Bytes(), &text) == nil {
			past = append(past, text)
		}
	}
	return past[max(0, len(past)-mostHistory):]
}

// remember adds a message to the history, for the cursor keys.
func (c *conversation) remember(text string) {
	c.past, c.recalled = append(c.past, text), 0
	if c.history == "" {
		return
	}
	if err := writeHistory(c.history, text); err != nil {
		c.hint, c.history = fmt.Sprintf("messages are not kept for the next chat: %v", err), ""
	}
}

func writeHistory(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	line, err := json.Marshal(text)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	if closing := f.Close(); err == nil {
		err = closing
	}
	return err
}
