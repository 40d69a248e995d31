package names

import (
	"fmt"
	"regexp"
	"strings"
)

const hubForm = "want hf:org/repo, hf:org/repo:Q4_K_M or hf:org/repo@revision"

var (
	hubPart  = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?$`)
	quant    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	revision = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._/+-]{0,199}$`)
)

// parseHub parses org/repo[:quant][@revision].
func parseHub(text, rest string) (Name, error) {
	n := Name{Kind: Hub}
	rest, at, hasRevision := strings.Cut(rest, "@")
	rest, n.Quant, _ = strings.Cut(rest, ":")
	if strings.HasSuffix(text, ":") || strings.Contains(text, ":@") {
		return Name{}, fmt.Errorf("%s: nothing follows the colon; %s", text, hubForm)
	}
	n.Org, n.Repo = "", rest
	if org, repo, ok := strings.Cut(rest, "/"); ok {
		n.Org, n.Repo = org, repo
		if err := checkHubPart(text, org); err != nil {
			return Name{}, err
		}
	}
	if err := checkHubPart(text, n.Repo); err != nil {
		return Name{}, err
	}
	if n.Quant != "" && (!quant.MatchString(n.Quant) || strings.Contains(n.Quant, "..")) {
		if err := CheckFile(n.Quant); err != nil || !strings.HasSuffix(n.Quant, ".gguf") {
			return Name{}, fmt.Errorf("%s: %q is neither a quantization, such as Q4_K_M, nor the path of a .gguf file; %s", text, n.Quant, hubForm)
		}
	}
	if hasRevision {
		n.Revision = at
		if err := CheckRevision(at); err != nil {
			return Name{}, fmt.Errorf("%s: %w", text, err)
		}
	}
	return n, nil
}

// checkHubPart returns an error if part is not a valid organization or repository name on the hub.
// Two dashes are invalid because the hub's cache writes a slash as two dashes.
func checkHubPart(text, part string) error {
	switch {
	case part == "":
		return fmt.Errorf("%s: a part of the name is empty; %s", text, hubForm)
	case len(part) > maxPart:
		return fmt.Errorf("%s: %.40q... has %d bytes; the hub allows %d; %s", text, part, len(part), maxPart, hubForm)
	case !hubPart.MatchString(part), strings.Contains(part, "--"), strings.Contains(part, ".."), strings.HasSuffix(strings.ToLower(part), ".git"):
		return fmt.Errorf("%s: %q is not a valid name on the hub: names have letters and digits, separated by single characters of - . _; %s", text, part, hubForm)
	}
	return nil
}

// CheckRevision returns an error if r is not a valid branch, tag or commit. The revision becomes a
// file name.
func CheckRevision(r string) error {
	if !revision.MatchString(r) || CheckFile(r) != nil || strings.HasSuffix(r, ".lock") {
		return fmt.Errorf("%.80q is no revision; want a branch, a tag or a commit, such as main", r)
	}
	return nil
}

// IsCommit reports whether r is a commit hash. The files of a commit never change.
func IsCommit(r string) bool { return isHex(r, 40) }

// isHex reports whether s is n hexadecimal digits in lower case.
func isHex(s string, n int) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == n
}
