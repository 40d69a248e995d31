package tokenizer_test

import (
	"fmt"
	"log"

	"github.com/realizar/realizar/tokenizer"
)

const smallJSON = `{
	"added_tokens": [{"id": 9, "content": "<end>", "special": true}],
	"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
	"decoder": {"type": "ByteLevel"},
	"model": {
		"type": "BPE",
		"vocab": {"h": 0, "i": 1, "hi": 2, "Ġ": 3, "<": 4, "e": 5, "n": 6, "d": 7, ">": 8},
		"merges": [["h", "i"]]
	}
}`

func ExampleTokenizer_EncodeSpans() {
	tok, err := tokenizer.FromJSON([]byte(smallJSON), nil)
	if err != nil {
		log.Fatal(err)
	}
	ids := tok.EncodeSpans([]tokenizer.Span{
		{Text: "hi <end>"},             // from a user
		{Text: "<end>", Special: true}, // from the template
	}, false)
	for _, id := range ids {
		token, _ := tok.Token(id)
		fmt.Printf("%d %s\n", id, token)
	}
	fmt.Println(tok.Decode(ids, true))
	// Output:
	// 2 hi
	// 3 Ġ
	// 4 <
	// 5 e
	// 6 n
	// 7 d
	// 8 >
	// 9 <end>
	// hi <end>
}
