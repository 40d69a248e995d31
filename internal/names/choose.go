package names

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ErrNoModel reports that none of the files can be the requested model.
var ErrNoModel = errors.New("no such model")

// A Choice is the set of a repository's files that make up one model.
type Choice struct {
	Files []string // in download order; the file whose presence marks the model as complete is last
	Main  string   // the file to open: a GGUF file or the first of its parts; empty for a safetensors folder
	Quant string   // the quantization as spelled in the file name; may be empty
}

var (
	partForm  = regexp.MustCompile(`^(.*)-([0-9]{5})-of-([0-9]{5})(\.[a-z]+)$`)
	quantForm = regexp.MustCompile(`(?i)(?:^|[._/-])((?:UD-)?(?:I?Q[1-8]_[0-9A-Z]+(?:_[0-9A-Z]+)*|TQ[12]_0|MXFP4(?:_MOE)?|NVFP4|BF16|F16|FP16|F32|FP32))(?:[./-]|$)`)
	draftForm = regexp.MustCompile(`(?i)(^|[._-])(mtp|eagle3?|draft)[._-]`)
	loraForm  = regexp.MustCompile(`(?i)(^|[._-])(lora|adapter)([._-]|$)`)
)

// isWeights reports whether name looks like a model's own GGUF file. It returns false for files
// that accompany one: an image projector, an importance matrix, a draft model, an adapter.
func isWeights(name string) bool {
	base := strings.ToLower(path.Base(name))
	return strings.HasSuffix(name, ".gguf") && !strings.Contains(base, "mmproj") && !strings.Contains(base, "imatrix") &&
		!draftForm.MatchString(base) && !loraForm.MatchString(base)
}

// A group is the files of one GGUF model: a single file, or its parts in order.
type group struct {
	name  string // without the part number
	files []string
	parts int // number of parts of the complete model
}

func (g *group) whole() bool { return len(g.files) == g.parts }

// Quant returns the quantization in a file name, or in its folder's name. It returns "" if neither
// has one.
func Quant(name string) string {
	if m := quantForm.FindStringSubmatch(strings.TrimSuffix(path.Base(name), ".gguf")); m != nil {
		return m[1]
	}
	if m := quantForm.FindStringSubmatch(path.Dir(name)); m != nil {
		return m[1]
	}
	return ""
}

// Title returns the name of a file or folder without its extension and part number.
func Title(file string) string {
	name := path.Base(file)
	if m := partForm.FindStringSubmatch(name); m != nil {
		return m[1]
	}
	for _, end := range []string{".gguf", ".safetensors"} {
		name = strings.TrimSuffix(name, end)
	}
	return name
}

// preferred are the quantizations to try, in order, if none is asked for.
var preferred = []string{"Q4_K_M", "Q8_0"}

// Choose selects the files of a model from a repository's listing. want is a quantization, the path
// of a file, or "safetensors". If want is empty, Choose tries Q4_K_M, then Q8_0, then the first
// complete GGUF model, then the folder of safetensors. The error wraps [ErrNoModel] if files are
// missing.
func Choose(files []string, want string) (Choice, error) {
	groups := groupsOf(files)
	folder := slices.ContainsFunc(files, isRootWeights)
	if strings.EqualFold(want, "safetensors") || want == "" && len(groups) == 0 && folder {
		return chooseFolder(files)
	}
	if len(groups) == 0 {
		return Choice{}, fmt.Errorf("%w: of %d files none is a GGUF file of weights%s", ErrNoModel, len(files), safetensorsInstead(folder))
	}
	g := choose(groups, want)
	if g == nil {
		return Choice{}, fmt.Errorf("%w: there is no %s; there are %s%s", ErrNoModel, want, strings.Join(quants(groups), ", "), safetensorsInstead(folder))
	}
	if !g.whole() {
		return Choice{}, fmt.Errorf("%w: %s has %d of %d parts", ErrNoModel, g.name, len(g.files), g.parts)
	}
	if err := CheckFiles(g.files); err != nil {
		return Choice{}, err
	}
	return Choice{Files: g.files, Main: g.files[0], Quant: Quant(g.files[0])}, nil
}

func safetensorsInstead(folder bool) string {
	if !folder {
		return ""
	}
	return `; the repository has safetensors: write ":safetensors" after its name`
}

// All returns every complete model among a repository's files.
func All(files []string) []Choice {
	var all []Choice
	for _, g := range groupsOf(files) {
		if g.whole() {
			all = append(all, Choice{Files: g.files, Main: g.files[0], Quant: Quant(g.files[0])})
		}
	}
	if c, err := chooseFolder(files); err == nil {
		all = append(all, c)
	}
	return all
}

// groupsOf returns the GGUF models among files, sorted by their first file.
func groupsOf(files []string) []*group {
	byName := map[string]*group{}
	for _, f := range slices.Sorted(slices.Values(files)) {
		if !isWeights(f) {
			continue
		}
		g := &group{name: f, parts: 1}
		if m := partForm.FindStringSubmatch(f); m != nil {
			no, _ := strconv.Atoi(m[2]) // five digits: cannot fail
			count, _ := strconv.Atoi(m[3])
			if no < 1 || no > count {
				continue // not a valid part
			}
			g.name, g.parts = m[1]+"-of-"+m[3]+m[4], count
		}
		if byName[g.name] == nil {
			byName[g.name] = g
		}
		byName[g.name].files = append(byName[g.name].files, f)
	}
	groups := make([]*group, 0, len(byName))
	for _, g := range byName {
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b *group) int { return cmp.Compare(a.files[0], b.files[0]) })
	return groups
}

// choose returns the group that best matches want, or nil if no group matches.
func choose(groups []*group, want string) *group {
	if want == "" {
		for _, q := range preferred {
			if g := choose(groups, q); g != nil && g.whole() {
				return g
			}
		}
		for _, g := range groups {
			if g.whole() {
				return g
			}
		}
		return groups[0]
	}
	for _, g := range groups {
		if slices.Contains(g.files, want) {
			return g
		}
	}
	var best *group
	for _, g := range groups {
		q := Quant(g.files[0])
		switch {
		case strings.EqualFold(q, want):
		case strings.EqualFold(q, "UD-"+want), containsWord(g.name, want):
			if best == nil {
				best = g
			}
			continue
		default:
			continue
		}
		if best == nil || !strings.EqualFold(Quant(best.files[0]), want) || len(g.name) < len(best.name) {
			best = g
		}
	}
	return best
}

// containsWord reports whether name contains word between dots, dashes or slashes, ignoring case.
func containsWord(name, word string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("./-", r) }),
		func(w string) bool { return strings.EqualFold(w, word) })
}

// quants returns the quantizations of the groups, for an error message. A group without one is
// listed by its file name.
func quants(groups []*group) []string {
	const most = 40
	var all []string
	for _, g := range groups {
		q := cmp.Or(Quant(g.files[0]), g.files[0])
		if !slices.Contains(all, q) {
			all = append(all, q)
		}
	}
	if len(all) > most {
		all = append(all[:most], fmt.Sprintf("and %d more", len(all)-most))
	}
	return all
}
