package arch_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/modelfile"
)

// checked lists the conformance cases by architecture, as a checkpoint or a GGUF file names it.
// TestChecked compares the list with the data.
var checked = map[string][]string{
	"AfmoeForCausalLM":            {"hf-more/afmoe"},
	"ApertusForCausalLM":          {"hf-more/apertus"},
	"ArceeForCausalLM":            {"hf-more/arcee"},
	"BambaForCausalLM":            {"hf-more/bamba"},
	"Cohere2ForCausalLM":          {"hf/cohere2"},
	"Cohere2MoeForCausalLM":       {"hf-more/cohere2-moe"},
	"CohereForCausalLM":           {"hf/cohere"},
	"DeepseekV2ForCausalLM":       {"hf/deepseek-v2"},
	"DeepseekV32ForCausalLM":      {"hf-more/deepseek-v32"},
	"DeepseekV3ForCausalLM":       {"hf/deepseek-v3"},
	"DeepseekV4ForCausalLM":       {"hf-more/deepseek-v4"},
	"Dots1ForCausalLM":            {"hf-more/dots1"},
	"Ernie4_5ForCausalLM":         {"hf/ernie4-5"},
	"Ernie4_5_MoeForCausalLM":     {"hf-more/ernie4-5-moe"},
	"Exaone4ForCausalLM":          {"hf/exaone4"},
	"ExaoneMoeForCausalLM":        {"hf-more/exaone-moe"},
	"FalconForCausalLM":           {"hf/falcon"},
	"FalconH1ForCausalLM":         {"hf-more/falcon-h1"},
	"FalconMambaForCausalLM":      {"hf-more/falcon-mamba"},
	"FlexOlmoForCausalLM":         {"hf-more/flex-olmo"},
	"GPT2LMHeadModel":             {"hf/gpt2"},
	"GPTNeoXForCausalLM":          {"hf/gpt-neox"},
	"Gemma2ForCausalLM":           {"hf/gemma2"},
	"Gemma3ForCausalLM":           {"hf/gemma3"},
	"Gemma3nForCausalLM":          {"hf-more/gemma3n"},
	"Gemma4ForCausalLM":           {"hf-more/gemma4", "hf-more/gemma4-moe"},
	"GemmaForCausalLM":            {"hf/gemma"},
	"Glm4ForCausalLM":             {"hf/glm4"},
	"Glm4MoeForCausalLM":          {"hf/glm4-moe"},
	"Glm4MoeLiteForCausalLM":      {"hf-more/glm4-moe-lite"},
	"GlmMoeDsaForCausalLM":        {"hf-more/glm-moe-dsa"},
	"GptOssForCausalLM":           {"hf/gpt-oss"},
	"GraniteForCausalLM":          {"hf/granite"},
	"GraniteMoeForCausalLM":       {"hf/granite-moe"},
	"GraniteMoeHybridForCausalLM": {"hf-more/granite-hybrid", "hf-more/granite-hybrid-dense"},
	"GraniteMoeSharedForCausalLM": {"hf-more/granite-moe-shared"},
	"HYV3ForCausalLM":             {"hf-more/hy-v3"},
	"HeliumForCausalLM":           {"hf-more/helium"},
	"HunYuanDenseV1ForCausalLM":   {"hf/hunyuan"},
	"HunYuanMoEV1ForCausalLM":     {"hf-more/hunyuan-moe"},
	"JambaForCausalLM":            {"hf-more/jamba"},
	"KimiLinearForCausalLM":       {"hf-more/kimi-linear"},
	"LagunaForCausalLM":           {"hf-more/laguna"},
	"Lfm2ForCausalLM":             {"hf/lfm2"},
	"Lfm2MoeForCausalLM":          {"hf-more/lfm2-moe"},
	"Llama4ForCausalLM":           {"hf-more/llama4"},
	"LlamaForCausalLM":            {"hf/llama", "hf/llama-3-rope-tied", "hf/llama-linear-rope-bias", "hf/llama-yarn"},
	"Mamba2ForCausalLM":           {"hf-more/mamba2-long", "hf/mamba2"},
	"MambaForCausalLM":            {"hf-more/mamba"},
	"LongcatFlashForCausalLM":     {"hf-more/longcat-flash"},
	"MiMoV2FlashForCausalLM":      {"hf-more/mimo-v2-flash"},
	"MiniCPM3ForCausalLM":         {"hf-more/minicpm3"},
	"MiniMaxForCausalLM":          {"hf-more/minimax"},
	"MiniMaxM2ForCausalLM":        {"hf/minimax-m2"},
	"Ministral3ForCausalLM":       {"hf-more/ministral3"},
	"MistralForCausalLM":          {"hf/mistral-swa"},
	"MixtralForCausalLM":          {"hf/mixtral"},
	"NemotronForCausalLM":         {"hf/nemotron"},
	"NemotronHForCausalLM":        {"hf-more/nemotron-h", "hf-more/nemotron-h-latent"},
	"Olmo2ForCausalLM":            {"hf/olmo2"},
	"Olmo3ForCausalLM":            {"hf/olmo3"},
	"OlmoHybridForCausalLM":       {"hf-more/olmo-hybrid"},
	"OlmoeForCausalLM":            {"hf-more/olmoe"},
	"Phi3ForCausalLM":             {"hf/phi3", "hf/phi3-longrope"},
	"PhiForCausalLM":              {"hf/phi"},
	"PhimoeForCausalLM":           {"hf-more/phimoe"},
	"Qwen2ForCausalLM":            {"hf/qwen2"},
	"Qwen2MoeForCausalLM":         {"hf/qwen2-moe"},
	"Qwen3ForCausalLM":            {"hf/qwen3"},
	"Qwen3MoeForCausalLM":         {"hf/qwen3-moe"},
	"Qwen3NextForCausalLM":        {"hf-more/qwen3-next-long", "hf/qwen3-next"},
	"Qwen3_5ForCausalLM":          {"hf-more/qwen3-5-long", "hf/qwen3-5"},
	"Qwen3_5MoeForCausalLM":       {"hf-more/qwen3-5-moe"},
	"RecurrentGemmaForCausalLM":   {"hf-more/recurrent-gemma"},
	"SeedOssForCausalLM":          {"hf/seed-oss"},
	"SmolLM3ForCausalLM":          {"hf/smollm3"},
	"SolarOpenForCausalLM":        {"hf-more/solar-open"},
	"StableLmForCausalLM":         {"hf/stablelm"},
	"Starcoder2ForCausalLM":       {"hf/starcoder2"},
	"YoutuForCausalLM":            {"hf-more/youtu"},
	"Zamba2ForCausalLM":           {"hf-more/zamba2"},
	"command-r":                   {"gguf/cohere.gguf"},
	"ernie4_5":                    {"gguf/ernie4-5.gguf"},
	"falcon":                      {"gguf/falcon.gguf"},
	"gemma":                       {"gguf/gemma.gguf"},
	"gpt2":                        {"gguf/gpt2.gguf"},
	"gptneox":                     {"gguf/gpt-neox.gguf"},
	"granite":                     {"gguf/granite.gguf"},
	"granitemoe":                  {"gguf/granite-moe.gguf"},
	"llama":                       {"gguf/llama-3-rope-tied.gguf", "gguf/llama-linear-rope-bias.gguf", "gguf/llama.gguf", "gguf/mixtral.gguf"},
	"nemotron":                    {"gguf/nemotron.gguf"},
	"qwen2":                       {"gguf/qwen2.gguf"},
	"qwen2moe":                    {"gguf/qwen2-moe.gguf"},
	"qwen3":                       {"gguf/qwen3.gguf"},
	"qwen3moe":                    {"gguf/qwen3-moe.gguf"},
	"seed_oss":                    {"gguf/seed-oss.gguf"},
	"stablelm":                    {"gguf/stablelm.gguf"},
	"starcoder2":                  {"gguf/starcoder2.gguf"},
}

const (
	modelsPage = "../../docs/models.md"
	tableBegin = "<!-- the table is written by go test ./internal/arch -run TestModelsPage -update -->\n"
	tableEnd   = "<!-- end of the table -->\n"
)

// docs/models.md agrees with the registry.
func TestModelsPage(t *testing.T) {
	page, err := os.ReadFile(modelsPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), tableBegin)
	_, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", modelsPage)
	}
	want := before + tableBegin + table(t) + tableEnd + after
	if *update {
		if err := os.WriteFile(modelsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(want, string(page)); d != "" {
		t.Errorf("%s is not what the registry says; run the test with -update\n%s", modelsPage, d)
	}
}

func table(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| models | class in `config.json` | `general.architecture` in GGUF | what distinguishes them | checked with |\n|---|---|---|---|---|\n")
	for _, a := range arch.Architectures() {
		if a.Title == "" || a.About == "" {
			t.Errorf("%s %s: the registry does not say what it is", a.Class, a.GGUF)
		}
		var with []string
		for _, name := range []string{a.Class, a.GGUF} {
			if name != "" {
				with = append(append(with, checked[name]...), checkedEncoders[name]...)
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", a.Title, code(a.Class), code(a.GGUF), a.About, strings.Join(with, ", "))
	}
	return b.String()
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// The list of checked cases agrees with the conformance data.
func TestChecked(t *testing.T) {
	got := map[string][]string{}
	for path := range casesIn(conformance(t)) {
		kind := filepath.Base(filepath.Dir(path))
		if kind == "gguf-quants" {
			continue
		}
		f, err := modelfile.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		name, _ := f.Meta().String("general.architecture")
		if list, ok := f.Meta().Strings("architectures"); ok {
			name = list[0]
		}
		got[name] = append(got[name], kind+"/"+filepath.Base(path))
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name := range got {
		slices.Sort(got[name])
	}
	if d := cmp.Diff(got, checked); d != "" {
		t.Errorf("cases (-) and list (+):\n%s", d)
		for _, name := range slices.Sorted(maps.Keys(got)) {
			t.Logf("%q: {%q},", name, got[name])
		}
	}
}
