package names

import (
	"bufio"
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// MaxAliases is the maximum size of an alias file, in bytes.
const MaxAliases = 1 << 20

// Aliases maps the user's own short names to model names.
type Aliases map[string]string

var aliasForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}(:[A-Za-z0-9][A-Za-z0-9._-]{0,63})?$`)

// IsAlias reports whether text can be a short name: a word, optionally followed by a colon and a
// second word. A path to a weights file and a name with a hub or registry prefix are not short
// names.
func IsAlias(text string) bool {
	first, _, _ := strings.Cut(text, ":")
	return aliasForm.MatchString(text) && first != "hf" && first != "ollama" &&
		!strings.HasSuffix(text, ".gguf") && !strings.HasSuffix(text, ".safetensors") && !strings.HasSuffix(text, ".json")
}

// ParseAliases parses lines of the form "alias = name". It ignores empty lines and lines that begin
// with #. file is the name that errors give to the input.
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
			return nil, fmt.Errorf("%s:%d: the alias %s appears twice; remove one", file, no, alias)
		}
		if err := checkTarget(name); err != nil {
			return nil, fmt.Errorf("%s:%d: %s: %w", file, no, alias, err)
		}
		aliases[alias] = name
	}
	return aliases, lines.Err()
}

// checkTarget returns an error if name cannot be the target of an alias. Another alias cannot,
// which rules out cycles.
func checkTarget(name string) error {
	if IsAlias(name) && name != "demo" {
		return fmt.Errorf("%q is itself a short name; want a name such as hf:org/repo, or a path such as ./model.gguf", name)
	}
	_, err := Parse(name)
	return err
}

// Format returns the aliases, sorted, in the form that [ParseAliases] reads.
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
