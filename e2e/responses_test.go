package e2e_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
)

// responded returns a request for a response to one question, by the likeliest tokens.
func responded(question string, tokens int64) responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model: modelName, Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(question)},
		Temperature: openai.Float(0), MaxOutputTokens: openai.Int(tokens),
	}
}

func TestResponses(t *testing.T) {
	s := serve(t)
	want := run(t, question, "--max-tokens", "30")
	p := responded(question, 30)
	p.Metadata = map[string]string{"colour": "blue"}
	got, err := s.client().Responses.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if got.OutputText() != want.Text || got.Usage.InputTokens != want.Usage.Prompt || got.Usage.OutputTokens != 30 || got.Usage.TotalTokens != want.Usage.Prompt+30 {
		t.Errorf("got %q, %+v, want %q", got.OutputText(), got.Usage, want.Text)
	}
	if got.Status != "incomplete" || got.IncompleteDetails.Reason != "max_output_tokens" || got.Metadata["colour"] != "blue" || got.Model != modelName || len(got.Output) != 1 || got.Output[0].Role != "assistant" {
		t.Errorf("the response is %s", got.RawJSON())
	}
	// Instructions become the first message of the conversation.
	p = responded(question, 20)
	p.Instructions = openai.String("Be brief.")
	instructed, err := s.client().Responses.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	chat := asked(question, 20)
	chat.Messages = slices.Insert(chat.Messages, 0, openai.SystemMessage("Be brief."))
	same, err := s.client().Chat.Completions.New(t.Context(), chat)
	if err != nil {
		t.Fatal(err)
	}
	if instructed.OutputText() != same.Choices[0].Message.Content || instructed.Usage.InputTokens != same.Usage.PromptTokens {
		t.Errorf("with instructions it is %q, as a chat %q", instructed.OutputText(), same.Choices[0].Message.Content)
	}
	// The same as a list of items.
	p = responded("", 20)
	p.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
		responses.ResponseInputItemParamOfMessage("Be brief.", "system"),
		responses.ResponseInputItemParamOfMessage(responses.ResponseInputMessageContentListParam{responses.ResponseInputContentParamOfInputText(question)}, "user"),
	}}
	items, err := s.client().Responses.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if items.OutputText() != same.Choices[0].Message.Content {
		t.Errorf("by items it is %q, as a chat %q", items.OutputText(), same.Choices[0].Message.Content)
	}
}

func TestResponseStream(t *testing.T) {
	s := serve(t)
	want := run(t, question, "--max-tokens", "20")
	stream := s.client().Responses.NewStreaming(t.Context(), responded(question, 20))
	defer stream.Close()
	var kinds []string
	var text strings.Builder
	var last responses.ResponseStreamEventUnion
	for n := int64(0); stream.Next(); n++ {
		last = stream.Current()
		if last.SequenceNumber != n {
			t.Errorf("event %d has the number %d", n, last.SequenceNumber)
		}
		if last.Type == "response.output_text.delta" {
			text.WriteString(last.Delta)
		}
		if last.Type == "response.output_text.done" && last.AsResponseOutputTextDone().Text != want.Text {
			t.Errorf("the whole text is %s", last.RawJSON())
		}
		if k := len(kinds); k == 0 || kinds[k-1] != last.Type {
			kinds = append(kinds, last.Type)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if text.String() != want.Text || last.Response.OutputText() != want.Text || last.Response.Usage.OutputTokens != 20 {
		t.Errorf("the deltas say %q, the response %q, want %q", &text, last.Response.OutputText(), want.Text)
	}
	if order := []string{
		"response.created", "response.in_progress", "response.output_item.added", "response.content_part.added", "response.output_text.delta",
		"response.output_text.done", "response.content_part.done", "response.output_item.done", "response.incomplete",
	}; !slices.Equal(kinds, order) {
		t.Errorf("events %q, want %q", kinds, order)
	}
}

func TestResponsesKeepNothing(t *testing.T) {
	s := serve(t)
	p := responded(question, 5)
	p.Store = openai.Bool(true)
	_, err := s.client().Responses.New(t.Context(), p)
	refusal(t, err, 400, "store")
	p = responded(question, 5)
	p.PreviousResponseID = openai.String("resp_1")
	_, err = s.client().Responses.New(t.Context(), p)
	refusal(t, err, 400, "previous_response_id", "not kept")
}
