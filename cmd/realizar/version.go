package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// versionCommand is `realizar version`.
type versionCommand struct{}

// Run writes one line: the version, the revision it was built from, the Go
// version and the machine's kind.
func (*versionCommand) Run(a *app) error {
	_, err := fmt.Fprintln(a.out, version())
	return err
}

func version() string {
	v, revision, modified := "(devel)", "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			v = info.Main.Version
		}
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				revision = " " + s.Value[:min(12, len(s.Value))]
			case s.Key == "vcs.modified" && s.Value == "true":
				modified = "+changes"
			}
		}
	}
	return fmt.Sprintf("realizar %s%s%s %s %s/%s", v, revision, modified, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
