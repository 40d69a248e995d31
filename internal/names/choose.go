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

// ErrNoModel says that there are no files that could be the model meant.
var ErrNoModel = errors.New("no such model")

// A Choice is the files of a repository that are one model.
type Choice struct {
	Files []string // in the order in which they are put there: what says that the model is whole comes last
	Main  string   // what opens the model: a GGUF file, the first of its parts, or empty for the folder
	Quant string   // the quantisation by the file's name, as it is written there; may be empty
}

var (
	partForm  = regexp.MustCompile(`^(.*)-([0-9]{5})-of-([0-9]{5})(\.[a-z]+)$`)
	quantForm = regexp.MustCompile(`(?i)(?:^|[._/-])((?:UD-)?(?:I?Q[1-8]_[0-9A-Z]+(?:_[0-9A-Z]+)*|TQ[12]_0|MXFP4(?:_MOE)?|NVFP4|BF16|F16|FP16|F32|FP32))(?:[./-]|$)`)
	draftForm = regexp.MustCompile(`(?i)(^|[._-])(mtp|eagle3?|draft)[._-]`)
	loraForm  = regexp.MustCompile(`(?i)(^|[._-])(lora|adapter)([._-]|$)`)
)

// isWeights reports whether a file is a model itself, by its name, and not what goes with
// one: a projector of images, an importance matrix, a draft model, an adapter.
func isWeights(name string) bool {
	base := strings.ToLower(path.Base(name))
	return strings.HasSuffix(name, ".gguf") && !strings.Contains(base, "mmproj") && !strings.Contains(base, "imatrix") &&
		!draftForm.MatchString(base) && !loraForm.MatchString(base)
}

// A group is the files of one GGUF model: one, or its parts in order.
type group struct {
	name  string // without the number of a part
	files []string
	parts int // that there have to be
}

func (g *group) whole() bool { return len(g.files) == g.parts }

// Quant is the quantisation that a file's name says; empty where it says none.
func Quant(name string) string {
	if m := quantForm.FindStringSubmatch(strings.TrimSuffix(path.Base(name), ".gguf")); m != nil {
		return m[1]
	}
	if m := quantForm.FindStringSubmatch(path.Dir(name)); m != nil {
		return m[1]
	}
	return ""
}

// Title is what a model is called by its file or folder, without an ending and the number of a part.
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

// preferred are the quantisations that are taken where none is asked for.
var preferred = []string{"Q4_K_M", "Q8_0"}

// Choose says which of a repository's files are the model that is wanted: a quantisation,
// the path of a file, "safetensors", or empty for Q4_K_M, then Q8_0, then the first GGUF
// file, then the folder of safetensors. Errors wrap [ErrNoModel] where files are missing.
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
		return Choice{}, fmt.Errorf("%w: of %s there are %d of %d parts", ErrNoModel, g.name, len(g.files), g.parts)
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

// All are the models that a repository's files hold whole.
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

// groupsOf are the GGUF models of a repository by name.
func groupsOf(files []string) []*group {
	byName := map[string]*group{}
	for _, f := range slices.Sorted(slices.Values(files)) {
		if !isWeights(f) {
			continue
		}
		g := &group{name: f, parts: 1}
		if m := partForm.FindStringSubmatch(f); m != nil {
			no, _ := strconv.Atoi(m[2]) // of five digits each
			count, _ := strconv.Atoi(m[3])
			if no < 1 || no > count {
				continue // no part of any model
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

// choose returns nil if there is none.
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

// containsWord reports whether a name has the word between dots, dashes or slashes.
func containsWord(name, word string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("./-", r) }),
		func(w string) bool { return strings.EqualFold(w, word) })
}

// quants are what the groups are called to choose among them.
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
