package names

import (
	"bufio"
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// MaxAliases are the most bytes that a file of aliases may have.
const MaxAliases = 1 << 20

// Aliases are short names of a user's own.
type Aliases map[string]string

var aliasForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}(:[A-Za-z0-9][A-Za-z0-9._-]{0,63})?$`)

// IsAlias reports whether a text may be a short name: a word, with a second one after a
// colon or without. It is no path to a file of weights, and no name of another kind.
func IsAlias(text string) bool {
	first, _, _ := strings.Cut(text, ":")
	return aliasForm.MatchString(text) && first != "hf" && first != "ollama" &&
		!strings.HasSuffix(text, ".gguf") && !strings.HasSuffix(text, ".safetensors") && !strings.HasSuffix(text, ".json")
}

// ParseAliases reads a file of lines "alias = name". Empty lines and those that begin
// with # do not count. file is what errors call it.
func ParseAliases(file string, data []byte) (Aliases, error) {
	if len(data) > MaxAliases {
		return nil, fmt.Errorf("%s: more than the %d bytes that a file of aliases may have", file, MaxAliases)
	}
	aliases := Aliases{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, MaxAliases+1)
	for no := 1; lines.Scan(); no++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		alias, name, ok := strings.Cut(line, "=")
		alias, name = strings.TrimSpace(alias), strings.TrimSpace(name)
		switch {
		case !ok || !IsAlias(alias):
			return nil, fmt.Errorf("%s:%d: %.80q is no alias; want a line such as: small = hf:org/repo:Q4_K_M", file, no, line)
		case aliases[alias] != "":
			return nil, fmt.Errorf("%s:%d: the alias %s is there twice; leave one", file, no, alias)
		}
		if err := checkTarget(name); err != nil {
			return nil, fmt.Errorf("%s:%d: %s: %w", file, no, alias, err)
		}
		aliases[alias] = name
	}
	return aliases, lines.Err()
}

// checkTarget refuses what an alias cannot stand for: another alias, so that none leads
// round in a circle.
func checkTarget(name string) error {
	if IsAlias(name) && name != "demo" {
		return fmt.Errorf("%q is a short name, too; want a name such as hf:org/repo, or a path such as ./model.gguf", name)
	}
	_, err := Parse(name)
	return err
}

// Format is the file that [ParseAliases] reads.
func (a Aliases) Format() []byte {
	var b bytes.Buffer
	b.WriteString("# Short names of models: alias = name\n")
	var all []string
	for alias := range a {
		all = append(all, alias)
	}
	slices.Sort(all)
	for _, alias := range all {
		fmt.Fprintf(&b, "%s = %s\n", alias, a[alias])
	}
	return b.Bytes()
}
