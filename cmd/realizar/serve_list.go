package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/realizar/realizar/internal/nearest"
	"github.com/realizar/realizar/internal/pool"
	filesettings "github.com/realizar/realizar/internal/settings"
	"github.com/realizar/realizar/internal/store"
)

// A servedModel is a model that serve may load.
type servedModel struct {
	name string
	modelSettings

	// version changes when the settings or the files change.
	version string
}

// modelSettings are the keys of a model in a file of models. The flags of serve set the defaults.
type modelSettings struct {
	Source  string        `help:"The model: a path relative to the folder of the file, or a name. Default: the name of the entry."`
	Aliases []string      `help:"Other names for requests."`
	Pinned  bool          `help:"Never unload the model for other models."`
	Preload bool          `help:"Load the model when the server starts."`
	TTL     time.Duration `name:"ttl" help:"Unload the model after this idle time. Default: --keep-alive."`

	modelFlags
	speculativeFlags
	stepFlags
}

// stepFlags say how steps are divided between prompts and answers.
type stepFlags struct {
	TargetITL time.Duration `name:"target-itl" default:"0s" placeholder:"TIME" group:"model" help:"Target for the time between tokens while prompts are read: the prefill in each step is limited to keep it. Default: 40ms on a GPU, 100ms on the CPU."`
}

// shared are the model flags that apply to all models together.
var shared = []string{"memory", "gpu-memory", "stream-weights"}

// spec returns m for the pool.
func (m *servedModel) spec() pool.Spec {
	return pool.Spec{Name: m.name, Aliases: m.Aliases, Pinned: m.Pinned, TTL: m.TTL, Version: m.version}
}

// allStored is the value of --models that stands for all models of this machine.
const allStored = "store"

// alone reports whether there is only one model. It gets all memory and is loaded before the server
// answers requests.
func (c *serveCommand) alone() bool { return len(c.Models) == 1 && c.ModelsFrom == "" }

// named returns the models of the arguments.
func (c *serveCommand) named(a *app) ([]servedModel, error) {
	if len(c.Models) == 0 && c.ModelsFrom == "" {
		c.Models = []string{a.orDemo("", "serve")}
	}
	var list []servedModel
	for _, model := range c.Models {
		path, err := a.modelPath(model, c.Pull)
		if err != nil {
			return nil, err
		}
		m := c.newModel(fileName(model), path)
		if path != model {
			m.name = strings.TrimPrefix(model, "hf:")
		}
		list = append(list, m)
	}
	if own := c.ServedModelName; len(own) > 0 && c.alone() {
		list[0].name, list[0].Aliases = own[0], own[1:]
	}
	return list, nil
}

// withListed returns the models of the arguments and those of --models.
func (c *serveCommand) withListed(named []servedModel) ([]servedModel, error) {
	list := slices.Clone(named)
	for i := range list {
		list[i].TTL, list[i].Pinned = c.KeepAlive, c.alone() && c.KeepAlive == 0
	}
	more, err := c.listed()
	if err != nil {
		return nil, err
	}
	list = append(list, more...)
	seen := map[string]string{}
	for _, m := range list {
		for _, name := range append([]string{m.name}, m.Aliases...) {
			if other, twice := seen[name]; twice {
				return nil, fmt.Errorf("%s and %s are both called %s; give one of the files another name, or a short name (realizar cp)", other, m.Source, name)
			}
			seen[name] = m.Source
		}
	}
	return list, nil
}

// newModel returns a model with the settings of the flags.
func (c *serveCommand) newModel(name, source string) servedModel {
	m := servedModel{name: name, modelSettings: modelSettings{Source: source, TTL: c.KeepAlive, modelFlags: c.modelFlags, speculativeFlags: c.speculativeFlags, stepFlags: c.stepFlags}}
	m.version = m.versionWith("")
	return m
}

// versionWith returns the version of m with the given settings. It includes the files, unless the
// source is a name.
func (m *servedModel) versionWith(settings string) string {
	return fmt.Sprintf("%s\n%s%s", m.Source, settings, filesOf(m.Source))
}

// filesOf lists the files of the model at path with their sizes and times. It returns "" if there
// is no model.
func filesOf(path string) string {
	m, err := store.Local(path)
	if err != nil {
		return ""
	}
	text := new(strings.Builder)
	for _, f := range m.Files {
		if info, err := os.Stat(f.Path); err == nil {
			fmt.Fprintf(text, "%s %d %d\n", f.Name, info.Size(), info.ModTime().UnixNano())
		}
	}
	return text.String()
}

// listed returns the models of --models.
func (c *serveCommand) listed() ([]servedModel, error) {
	switch info, err := os.Stat(c.ModelsFrom); {
	case c.ModelsFrom == "":
		return nil, nil
	case c.ModelsFrom == allStored && err != nil:
		return c.stored()
	case err != nil:
		return nil, fmt.Errorf("--models: %w; want a file, a folder, or %s for the models that realizar list shows", err, allStored)
	case info.IsDir():
		return c.inFolder(c.ModelsFrom)
	}
	return c.inFile(c.ModelsFrom)
}

// stored returns the models of this machine that have names.
func (c *serveCommand) stored() ([]servedModel, error) {
	found, err := models().List()
	if err != nil && len(found) == 0 {
		return nil, err
	}
	var list []servedModel
	for _, m := range found {
		name := shortName(m.Name)
		if !slices.ContainsFunc(list, func(other servedModel) bool { return other.name == name }) {
			own := c.newModel(name, m.Path)
			if alias := m.Name.Ollama(); alias != name && !slices.ContainsFunc(list, func(other servedModel) bool { return other.name == alias }) {
				own.Aliases = []string{alias}
			}
			list = append(list, own)
		}
	}
	if len(list) == 0 && !c.ManageModels {
		return nil, errors.New("--models=store: there is no model on this machine; realizar pull NAME fetches one")
	}
	return list, nil
}

// inFolder returns the models of a folder and of its immediate subfolders.
func (c *serveCommand) inFolder(folder string) ([]servedModel, error) {
	found, err := store.Folder(folder)
	if err != nil {
		return nil, fmt.Errorf("--models: %w", err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("--models: %s has no model; want GGUF files, or folders with a GGUF file or safetensors", folder)
	}
	var list []servedModel
	for _, m := range found {
		name := fileName(m.Path)
		if at := filepath.Dir(m.Path); strings.HasSuffix(m.Path, ".gguf") && at != filepath.Clean(folder) {
			name = filepath.Base(at) + "/" + name
		}
		list = append(list, c.newModel(name, m.Path))
	}
	return list, nil
}

// inFile returns the models of a file.
func (c *serveCommand) inFile(file string) ([]servedModel, error) {
	data, err := filesettings.Read(file)
	if err != nil {
		return nil, fmt.Errorf("--models: %w", err)
	}
	tables, err := filesettings.ParseTables(file, data)
	if err != nil {
		return nil, err
	}
	if len(tables) == 0 {
		return nil, fmt.Errorf("%s has no model; want names with their settings below, such as\n    small:\n      source: small.gguf", file)
	}
	var list []servedModel
	for _, t := range tables {
		m := c.newModel(t.Key, "")
		if err := m.read(file, t); err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

// read sets the settings of m from a table of a file.
func (m *servedModel) read(file string, t filesettings.Table) error {
	parser, err := kong.New(&m.modelSettings)
	if err != nil {
		return err
	}
	keys := map[string]*setting{}
	var known []string
	for _, flag := range parser.Model.Flags {
		if flag.Name != "help" && !slices.Contains(shared, flag.Name) {
			keys[flag.Name] = newSetting(flag.Value)
			known = append(known, flag.Name)
		}
	}
	lines := map[string]int{}
	said := new(strings.Builder)
	for _, line := range t.Settings {
		place := fmt.Sprintf("%s:%d: %.60q", file, line.Line, t.Key)
		key := keys[line.Key]
		switch {
		case slices.Contains(shared, line.Key):
			return fmt.Errorf("%s: %s applies to all models together; give it to serve", place, line.Key)
		case key == nil:
			return fmt.Errorf("%s: %.60q is not a setting of a model; the nearest are %s", place, line.Key, nearest.OneOf(nearest.Names(line.Key, known, 3)))
		case line.List && !key.IsSlice():
			return fmt.Errorf("%s: %s: want one value, not a list", place, line.Key)
		}
		raw := any(line.Texts[0])
		if key.IsSlice() {
			raw = list(line.Texts)
		}
		value, err := key.read(raw)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", place, line.Key, err)
		}
		key.Target.Set(value)
		lines[line.Key] = line.Line
		if !slices.Contains([]string{"source", "aliases", "pinned", "preload", "ttl"}, line.Key) {
			fmt.Fprintf(said, "%s %q\n", line.Key, line.Texts)
		}
	}
	if err := m.Validate(); err != nil {
		var wrong *flagError
		if errors.As(err, &wrong) && lines[wrong.flag] > 0 {
			return errors.New(wrong.of(fmt.Sprintf("%s:%d: %.60q: %s", file, lines[wrong.flag], t.Key, wrong.flag)))
		}
		return err
	}
	if m.TTL < 0 {
		return fmt.Errorf("%s:%d: %.60q: ttl=%v: want more than 0, or 0 until its memory is needed", file, lines["ttl"], t.Key, m.TTL)
	}
	if m.Source == "" {
		m.Source = t.Key
	}
	if beside := filepath.Join(filepath.Dir(file), m.Source); !filepath.IsAbs(m.Source) && exists(beside) {
		m.Source = beside
	}
	m.version = m.versionWith(said.String())
	return nil
}

// exists reports whether there is a file or a folder at path.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
