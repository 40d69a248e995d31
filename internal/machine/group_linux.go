package machine

import (
	"io/fs"
	"strings"
)

// A mount is a mounted hierarchy of control groups.
type mount struct {
	unified     bool // version 2
	group, path string
}

// mounts returns the hierarchies with a controller, such as cpu or memory, and the hierarchy of
// version 2, from /proc/self/mountinfo (proc_pid_mountinfo(5)).
func mounts(root fs.FS, controller string) []mount {
	text, _ := fs.ReadFile(root, "proc/self/mountinfo")
	var all []mount
	for line := range strings.Lines(string(text)) {
		before, after, ok := strings.Cut(line, " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(g) < 3 {
			continue
		}
		m := mount{unified: g[0] == "cgroup2", group: unescape(f[3]), path: unescape(f[4])}
		if m.unified || g[0] == "cgroup" && contains(g[2], controller) {
			all = append(all, m)
		}
	}
	return all
}

// groups returns the directories of the process's group in a hierarchy and of its ancestors, as far
// as they are mounted.
func groups(root fs.FS, m mount, controller string) []string {
	text, _ := fs.ReadFile(root, "proc/self/cgroup") // cgroups(7)
	var dirs []string
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 || m.unified != (f[0] == "0" && f[1] == "") || !m.unified && !contains(f[1], controller) {
			continue
		}
		// The mount may show a descendant of the root group.
		rest, ok := strings.CutPrefix(f[2], strings.TrimSuffix(m.group, "/"))
		if !ok || rest != "" && rest[0] != '/' {
			rest = ""
		}
		base := strings.Trim(m.path, "/")
		for dir := strings.TrimSuffix(rest, "/"); ; dir = dir[:strings.LastIndexByte(dir, '/')] {
			dirs = append(dirs, base+dir)
			if dir == "" {
				break
			}
		}
	}
	return dirs
}

// contains reports whether a comma-separated list contains a word.
func contains(list, word string) bool {
	for s := range strings.SplitSeq(list, ",") {
		if s == word {
			return true
		}
	}
	return false
}

// unescape decodes a field of mountinfo, which has blanks and backslashes in octal.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace
