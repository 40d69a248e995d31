package realizar_test

import (
	"context"
	"fmt"
	"log"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/demo"
)

// The weights in this file are random. It answers with random words, but always the same ones.
const babble = "testdata/babble.gguf"

func ExampleModel_Ask() {
	ctx := context.Background()
	m, err := realizar.Open(ctx, demo.Name, realizar.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	answer, err := m.Ask(ctx, "What is 3 + 4?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer)
	// Output: 3 + 4 = 7.
}

func ExampleModel_Generate() {
	ctx := context.Background()
	m, err := realizar.Open(ctx, babble, realizar.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	request := realizar.Request{Prompt: "Once upon a time", Generation: realizar.Generation{MaxTokens: new(6)}}
	for event, err := range m.Generate(ctx, &request) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(event.Text)
		if f := event.Finish; f != nil {
			fmt.Printf("\n%s after %d tokens\n", f.Reason, f.Usage.CompletionTokens)
		}
	}
	// Output:
	// four little may music tell an
	// length after 6 tokens
}

func ExampleModel_Chat() {
	ctx := context.Background()
	m, err := realizar.Open(ctx, babble, realizar.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	request := realizar.ChatRequest{
		Messages: []chat.Message{
			{Role: "system", Content: "Answer in verse."},
			{Role: "user", Content: "What is the moon?"},
		},
		Generation: realizar.Generation{MaxTokens: new(40), Stop: []string{" must"}},
	}
	for event, err := range m.Chat(ctx, &request) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(event.Text)
		if f := event.Finish; f != nil {
			fmt.Printf("\n%s at %q\n", f.Reason, f.StopString)
		}
	}
	// Output:
	// came table silver once saw sing stay star sky
	// stop at " must"
}

// Leaving the loop ends the request.
func ExampleModel_Generate_leaving() {
	ctx := context.Background()
	m, err := realizar.Open(ctx, babble, realizar.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	text := ""
	for event, err := range m.Generate(ctx, &realizar.Request{Prompt: "Once upon a time"}) {
		if err != nil {
			log.Fatal(err)
		}
		if text += event.Text; len(text) > 30 {
			break
		}
	}
	fmt.Println(text)
	// Output:
	// four little may music tell an form
}
