package tokenizer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/realizar/realizar/tokenizer"
)

const megabyte = 1 << 20

// megabytes are texts of a megabyte, each hard for some part of a tokenizer.
var megabytes = map[string]string{
	"letter":  strings.Repeat("a", megabyte),
	"letters": strings.Repeat("aB", megabyte/2),
	"spaces":  strings.Repeat(" ", megabyte),
	"lines":   strings.Repeat("\n", megabyte),
	"digits":  strings.Repeat("7", megabyte),
	"chinese": strings.Repeat("世界你好", megabyte/12),
	"angles":  strings.Repeat("<", megabyte),
	"almost":  strings.Repeat("<|im_start", megabyte/10),
	"special": strings.Repeat("<|im_end|>", megabyte/10),
	"quotes":  strings.Repeat("'", megabyte),
	"marks":   "a" + strings.Repeat("\u0301\u0323", megabyte/4),
	"emoji":   strings.Repeat("👩\u200d💻", megabyte/11),
	"invalid": strings.Repeat("\xff\xe4", megabyte/2),
	"prose": strings.Repeat("The quick brown fox jumps over the lazy dog, doesn't it? "+
		"Größe naïve café; Привет, мир! 你好世界 1234567890\n\tfor i := 0; i < n; i++ {\n", megabyte/170),
}

func BenchmarkEncode(b *testing.B) {
	bench := func(name string, tok *tokenizer.Tokenizer) {
		for text, s := range megabytes {
			b.Run(name+"/"+text, func(b *testing.B) {
				b.SetBytes(int64(len(s)))
				for b.Loop() {
					tok.Encode(s, false)
				}
			})
		}
	}
	for _, kind := range []string{
		"gpt2", "llama3", "qwen2", "o200k", "deepseek-v3", "llama2-spm-bpe", "gemma-spm-bpe",
		"unigram", "wordpiece",
	} {
		bench(kind, readHF(b, kind))
	}
	for _, name := range []string{"llama-spm", "gpt-2", "deepseek-coder", "starcoder", "bert-bge"} {
		bench("gguf-"+name, readGGUF(b, name))
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, kind := range []string{"llama3", "llama2-spm-bpe"} {
		tok := readHF(b, kind)
		ids := tok.Encode(megabytes["prose"], false)
		b.Run(kind, func(b *testing.B) {
			b.SetBytes(int64(len(megabytes["prose"])))
			for b.Loop() {
				tok.Decode(ids, false)
			}
		})
		b.Run(kind+"/stream", func(b *testing.B) {
			b.SetBytes(int64(len(megabytes["prose"])))
			for b.Loop() {
				s := tok.NewStream(false)
				for _, id := range ids {
					s.Push(id)
				}
				s.Flush()
			}
		})
	}
}

// BenchmarkFromJSON loads a vocabulary of 200,000 tokens with as many merges.
func BenchmarkFromJSON(b *testing.B) {
	data := []byte(largeTokenizerJSON(200_000))
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := tokenizer.FromJSON(data, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// largeTokenizerJSON returns a tokenizer.json with the letters and n more tokens.
func largeTokenizerJSON(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	var vocab, merges strings.Builder
	tokens := make([]string, 0, n+len(letters))
	for i, c := range letters {
		tokens = append(tokens, string(c))
		fmt.Fprintf(&vocab, "%q: %d,\n      ", string(c), i)
	}
	for i := range n {
		first, second := tokens[i/len(letters)], letters[i%len(letters):i%len(letters)+1]
		tokens = append(tokens, first+second)
		if i > 0 {
			vocab.WriteString(",\n      ")
			merges.WriteString(",\n      ")
		}
		fmt.Fprintf(&vocab, "%q: %d", first+second, len(letters)+i)
		fmt.Fprintf(&merges, "[\n        %q,\n        %q\n      ]", first, second)
	}
	return fmt.Sprintf(`{"version": "1.0", "model": {"type": "BPE", "vocab": {%s}, "merges": [%s]}}`,
		vocab.String(), merges.String())
}
