package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/realizar/realizar/internal/nearest"
	filesettings "github.com/realizar/realizar/internal/settings"
)

// settingsFlags are embedded in a command whose flags can also be set by the environment and by a
// file. A flag with the tag setting:"no" cannot.
type settingsFlags struct {
	Config      string `setting:"no" placeholder:"FILE" common:"" help:"Read settings from FILE, again when it changes and on SIGHUP."`
	PrintConfig bool   `name:"print-config" setting:"no" help:"Print the settings in effect and where each comes from, in the form of a settings file, and exit."`
	JSON        bool   `name:"json" setting:"no" help:"With --print-config: write one JSON object for each setting, one per line."`

	settings settings
}

// settings are the settings of a command, and where their values come from.
type settings struct {
	list []*setting
	// The path and the content of the file of settings; empty if there is none.
	file, content string
}

// A setting is a flag of a command, or its argument.
type setting struct {
	*kong.Value
	live  liveness
	from  origin
	place string // of the value: --port, REALIZAR_PORT, serve.yaml:3; empty for the default
	raw   any    // the value from the environment or the file, in the parser's form; else nil
}

// A liveness says whether a setting can change while the command runs. It is the flag's tag live.
type liveness string

// The kinds of liveness.
const (
	liveNot  liveness = ""     // a change requires a restart
	liveYes  liveness = "yes"  // the value can change
	liveFile liveness = "file" // the name of a file can change to another name
)

// An origin is the source of a value. Later origins override earlier ones.
type origin string

// The origins.
const (
	fromDefault     origin = "default"
	fromFile        origin = "file"
	fromEnvironment origin = "environment"
	fromFlag        origin = "flag"
)

// configVariable names the file of settings if --config does not.
const configVariable = "REALIZAR_CONFIG"

// variable returns the setting's environment variable.
func (s *setting) variable() string {
	return "REALIZAR_" + strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))
}

// argument returns the setting's name on the command line.
func (s *setting) argument() string {
	if s.Flag == nil {
		return strings.ToUpper(s.Name)
	}
	return "--" + s.Name
}

// settingsOf returns the settings of a command.
func settingsOf(command *kong.Node) []*setting {
	var all []*setting
	for _, argument := range command.Positional {
		all = append(all, newSetting(argument))
	}
	for _, flag := range command.Flags {
		if flag.Tag.Get("setting") != "no" {
			all = append(all, newSetting(flag.Value))
		}
	}
	return all
}

func newSetting(v *kong.Value) *setting {
	return &setting{Value: v, live: liveness(v.Tag.Get("live")), from: fromDefault}
}

// find returns the setting with a name, or nil.
func (s *settings) find(name string) *setting {
	i := slices.IndexFunc(s.list, func(one *setting) bool { return one.Name == name })
	if i < 0 {
		return nil
	}
	return s.list[i]
}

// resolve finds the origin of each setting of the parsed command, and gives the parser the values
// that flags do not set. It checks all values of the file and the environment.
func (s *settings) resolve(c *kong.Context) error {
	command := c.Selected()
	s.list = settingsOf(command)
	place := configVariable
	s.file = os.Getenv(configVariable)
	given := map[*kong.Value]bool{}
	for _, p := range c.Path {
		switch {
		case p.Flag != nil && p.Flag.Name == "config":
			place = "--config"
			s.file, _ = c.FlagValue(p.Flag).(string)
		case p.Flag != nil:
			given[p.Flag.Value] = true
		case p.Positional != nil:
			given[p.Positional] = true
		}
	}
	if err := s.readFile(place); err != nil {
		return err
	}
	for _, one := range s.list {
		if err := one.readEnvironment(); err != nil {
			return err
		}
		if given[one.Value] {
			one.from, one.place, one.raw = fromFlag, one.argument(), nil
		}
	}
	c.AddResolver(kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		if one := s.find(flag.Name); one != nil {
			return one.raw, nil
		}
		return nil, nil
	}))
	return nil
}

// readFile reads the file, if there is one. place is where it was named, for errors.
func (s *settings) readFile(place string) error {
	if s.file == "" {
		return nil
	}
	data, err := filesettings.Read(s.file)
	if err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	s.content = string(data)
	lines, err := filesettings.Parse(s.file, data)
	if err != nil {
		return err
	}
	for _, line := range lines {
		place := fmt.Sprintf("%s:%d", s.file, line.Line)
		one := s.find(line.Key)
		if one == nil {
			return fmt.Errorf("%s: %.60q is not a setting; the nearest are %s", place, line.Key, s.nearest(line.Key))
		}
		raw := any(line.Texts[0])
		switch {
		case one.IsSlice():
			raw = list(line.Texts)
		case line.List:
			return fmt.Errorf("%s: %s: want one value, not a list", place, line.Key)
		}
		if err := one.set(fromFile, place, raw); err != nil {
			return fmt.Errorf("%s: %s: %w", place, line.Key, err)
		}
	}
	return nil
}

// nearest returns the known names nearest to an unknown one, nearest first.
func (s *settings) nearest(name string) string {
	var known []string
	for _, one := range s.list {
		known = append(known, one.Name)
	}
	return nearest.OneOf(nearest.Names(strings.ReplaceAll(strings.TrimLeft(name, "-"), "_", "-"), known, 3))
}

// readEnvironment reads the setting's variable. An empty variable counts as unset. The elements of
// a list are separated by commas.
func (s *setting) readEnvironment() error {
	text := os.Getenv(s.variable())
	if text == "" {
		return nil
	}
	raw := any(text)
	if s.IsSlice() {
		texts := strings.Split(text, ",")
		for i := range texts {
			texts[i] = strings.TrimSpace(texts[i])
		}
		raw = list(texts)
	}
	err := s.set(fromEnvironment, s.variable(), raw)
	switch {
	case err == nil:
		return nil
	case strings.HasPrefix(text, "tcp://"), strings.HasPrefix(text, "udp://"):
		return fmt.Errorf("%s: %w; Kubernetes sets it where a service has that name: set enableServiceLinks: false for the pod, or give the service another name", s.variable(), err)
	}
	return fmt.Errorf("%s: %w", s.variable(), err)
}

// list converts texts to the parser's form of a list.
func list(texts []string) []any {
	all := make([]any, len(texts))
	for i, text := range texts {
		all[i] = text
	}
	return all
}

// set sets the value and its origin, if the value is valid.
func (s *setting) set(from origin, place string, raw any) error {
	if _, err := s.read(raw); err != nil {
		return err
	}
	s.from, s.place, s.raw = from, place, raw
	return nil
}

// read returns the value that the parser makes of raw.
func (s *setting) read(raw any) (reflect.Value, error) {
	target := reflect.New(s.Target.Type()).Elem()
	if target.Kind() == reflect.Pointer {
		target.Set(reflect.New(target.Type().Elem()))
	}
	scan := kong.Scan()
	if texts, ok := raw.([]any); ok && s.Flag == nil { // each value of an argument is a token of its own
		for _, text := range slices.Backward(texts) {
			scan.PushTyped(text, kong.PositionalArgumentToken)
		}
	} else {
		scan.PushTyped(raw, kong.FlagValueToken)
	}
	err := s.Mapper.Decode(&kong.DecodeContext{Value: s.Value, Scan: scan}, target)
	if text := fmt.Sprint(target.Interface()); err == nil && s.Enum != "" && !s.EnumMap()[text] {
		err = fmt.Errorf("%.60q is not one of %s", text, strings.Join(s.EnumSlice(), ", "))
	}
	return target, err
}

// applyArguments sets the command's arguments; the parser sets only flags.
func (s *settings) applyArguments() error {
	for _, one := range s.list {
		if one.Flag != nil || one.raw == nil {
			continue
		}
		value, err := one.read(one.raw)
		if err != nil {
			return err
		}
		one.Target.Set(value)
	}
	return nil
}

// placed adds the place of the value to an error about a setting that no flag set.
func (s *settings) placed(err error) error {
	var wrong *flagError
	if !errors.As(err, &wrong) {
		return err
	}
	switch one := s.find(wrong.flag); {
	case one == nil:
	case one.from == fromEnvironment:
		return errors.New(wrong.of(one.place))
	case one.from == fromFile:
		return errors.New(wrong.of(one.place + ": " + one.Name))
	}
	return err
}

// value returns the setting's value for JSON, or nil if it is not set.
func (s *setting) value() any {
	v := s.Target
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	switch value := v.Interface().(type) {
	case bool, int:
		return value
	case []string:
		if len(value) == 0 {
			return nil
		}
		shown := make([]string, len(value))
		for i, text := range value {
			shown[i] = withoutSecret(text)
		}
		return shown
	case memoryLimit:
		if value == (memoryLimit{}) {
			return nil
		}
		return value.String()
	}
	if text := fmt.Sprint(v.Interface()); text != "" {
		return withoutSecret(text)
	}
	return nil
}

// withoutSecret hides what may be secret in an address: the user, the password and the query.
func withoutSecret(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	u, err := url.Parse(text)
	if err != nil {
		return "xxxxx"
	}
	if u.User == nil && u.RawQuery == "" {
		return text
	}
	if u.User != nil {
		u.User = url.User("xxxxx")
	}
	if u.RawQuery != "" {
		u.RawQuery = "xxxxx"
	}
	return u.String()
}

// plainValue matches texts that need no quotes in YAML.
var plainValue = regexp.MustCompile(`^[A-Za-z0-9./][A-Za-z0-9./_:%+-]*$`)

// text returns the value as written in a file, or "" if it is not set.
func (s *setting) text() string {
	switch value := s.value().(type) {
	case nil:
		return ""
	case string:
		return quoted(value)
	case []string:
		texts := make([]string, len(value))
		for i, text := range value {
			texts[i] = quoted(text)
		}
		return "[" + strings.Join(texts, ", ") + "]"
	default:
		return fmt.Sprint(value)
	}
}

// quoted returns a text for YAML, in quotes if it needs them.
func quoted(text string) string {
	if plainValue.MatchString(text) && !strings.HasSuffix(text, ":") && !strings.EqualFold(text, "null") {
		return text
	}
	return strconv.QuoteToASCII(text)
}

// write writes all settings, as a file of settings or as JSON.
func (s *settings) write(w io.Writer, asJSON bool) error {
	if asJSON {
		out := json.NewEncoder(w)
		out.SetEscapeHTML(false)
		for _, one := range s.list {
			if err := out.Encode(printedSetting{one.Name, one.value(), one.from, one.place}); err != nil {
				return err
			}
		}
		return nil
	}
	t := newTable()
	for _, one := range s.list {
		name, value, place := one.Name+":", one.text(), one.place
		if value == "" {
			name = "# " + name
		}
		if place == "" {
			place = string(one.from)
		}
		t.row(name, value, "# "+oneLine(place))
	}
	_, err := io.WriteString(w, t.text())
	return err
}

// A printedSetting is a setting in the output of --print-config --json.
type printedSetting struct {
	Name   string `json:"name"`
	Value  any    `json:"value"`
	Source origin `json:"source"`
	Place  string `json:"place,omitempty"`
}
