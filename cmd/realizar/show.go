package main

import (
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/realizar/realizar"
)

// showCommand is `realizar show`.
type showCommand struct {
	Name string `arg:"" help:"Name of the model, as realizar list shows it."`
	JSON bool   `name:"json" help:"Write one JSON object."`
}

// Help is shown below the command's line.
func (*showCommand) Help() string {
	return `show writes what is known of a model that realizar keeps: its files with digests and paths, its
architecture, and the memory that it needs on this machine. realizar inspect shows more, and takes
files anywhere.

Examples:

    realizar show hf:org/repo:Q4_K_M
    realizar show small --json`
}

// A shownFile is a file in the output of show.
type shownFile struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	Digest string `json:"digest,omitempty"`
}

// Run shows the model.
func (c *showCommand) Run(a *app) error {
	m, err := findModel(c.Name)
	if err != nil {
		return err
	}
	s := models()
	l, d := a.listed(s, m)
	files := make([]shownFile, 0, len(m.Files))
	for _, f := range m.Files {
		files = append(files, shownFile{f.Name, f.Path, f.Size, string(f.Digest)})
	}
	if c.JSON {
		out := json.NewEncoder(a.out)
		out.SetIndent("", "  ")
		return out.Encode(struct {
			listedModel
			Commit   string      `json:"commit,omitempty"`
			Manifest string      `json:"manifest,omitempty"`
			Files    []shownFile `json:"files"`
		}{l, m.Commit, m.Manifest, files})
	}
	t := newTable()
	t.row("name", m.Name.String())
	t.row("path", m.Path)
	t.row("size", byteText(l.Size))
	for _, r := range [][2]string{{"commit", m.Commit}, {"manifest", m.Manifest}, {"architecture", l.Architecture}, {"quantisation", l.Quant}, {"problem", l.Problem}} {
		if r[1] != "" {
			t.row(r[0], r[1])
		}
	}
	t.row("came", agoText(time.Now(), m.Modified))
	t.row("last used", agoText(time.Now(), l.Used))
	text := t.text() + "\nFiles\n\n"
	t = newTable()
	for _, f := range files {
		t.row(f.Name, byteText(f.Size), strings.TrimPrefix(f.Digest, "sha256:"))
	}
	text += t.text(1)
	if d != nil && d.Problem == "" {
		if memory, err := d.Memory(realizar.Options{Device: "auto", Parallel: 1, Kernels: a.kernels}); err == nil {
			text += memoryText(memory, d.Dimensions.Layers, 1)
		}
	}
	_, err = io.WriteString(a.out, text)
	return err
}
