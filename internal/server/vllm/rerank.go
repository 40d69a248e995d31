package vllm

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"slices"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

// A rerankRequest is the body of POST /v1/rerank, which has the shape that Jina's and
// Cohere's APIs share.
type rerankRequest struct {
	model     string
	query     *string
	documents []string
	top       int
	returned  bool
	priority  int
	salt      string
}

var rerankFields = fields.List[rerankRequest]{
	fields.Text("model", "the model that is served", func(r *rerankRequest) *string { return &r.model }),
	fields.New("query", "a string", "", func(r *rerankRequest, value json.RawMessage) error {
		r.query = new("")
		return fields.ReadText(value, r.query)
	}),
	fields.New("documents", "a list of 1 to 2048 strings, or objects of a text", "", func(r *rerankRequest, value json.RawMessage) (err error) {
		r.documents, err = readDocuments(value)
		return err
	}),
	fields.Whole("top_n", "all documents", 1, math.MaxInt32, func(r *rerankRequest) *int { return &r.top }),
	fields.Flag("return_documents", "false", func(r *rerankRequest) *bool { return &r.returned }),
	fields.Whole("priority", "0; lower ones go first", -math.MaxInt32, math.MaxInt32, func(r *rerankRequest) *int { return &r.priority }),
	fields.Text("cache_salt", "none", func(r *rerankRequest) *string { return &r.salt }),
	fields.Ignored[rerankRequest]("user"),
}

// A rankedText is a document as an object, of a request or of an answer.
type rankedText struct {
	Text string `json:"text"`
}

var rankedTextFields = fields.List[rankedText]{
	fields.Text("text", "", func(d *rankedText) *string { return &d.Text }),
}

// maxDocuments are the most of one request.
const maxDocuments = 2048

// readDocuments reads the texts of documents.
func readDocuments(value json.RawMessage) ([]string, error) {
	list, err := fields.Elements(value)
	if err != nil || len(list) == 0 || len(list) > maxDocuments {
		return nil, fields.ErrWrong
	}
	documents := make([]string, len(list))
	for i, one := range list {
		at := fmt.Sprintf("documents[%d]", i)
		if one[0] != '{' {
			if err := fields.ReadText(one, &documents[i]); err != nil {
				return nil, fields.Named(err, at, "a string, or an object of a text", one)
			}
			continue
		}
		named := false
		var d rankedText
		if err := rankedTextFields.Decode(&d, one, at); err != nil {
			return nil, err
		}
		if err := fields.Members(one, at, func(name string, v json.RawMessage) error {
			named = named || name == "text" && !fields.IsNull(v)
			return nil
		}); err != nil {
			return nil, err
		}
		if !named {
			return nil, fields.Missing(at + ".text")
		}
		documents[i] = d.Text
	}
	return documents, nil
}

// A rerankAnswer is the answer: the best documents, the best first.
type rerankAnswer struct {
	Object  string         `json:"object"`
	Model   string         `json:"model"`
	Results []rerankResult `json:"results"`
	Usage   rerankUsage    `json:"usage"`
}

type rerankUsage struct {
	PromptTokens int `json:"prompt_tokens"`
	TotalTokens  int `json:"total_tokens"`
}

type rerankResult struct {
	Index    int         `json:"index"`
	Score    float32     `json:"relevance_score"`
	Document *rankedText `json:"document,omitempty"`
}

// rerank is POST /v1/rerank.
func rerank(x *server.Exchange) error {
	if err := x.NoTimings(); err != nil {
		return err
	}
	r, err := server.ReadFor(x, rerankFields, nil)
	if err != nil {
		return err
	}
	if err := checkRerank(x, r); err != nil {
		return err
	}
	ctx, done, err := x.Begin(len(r.documents))
	if err != nil {
		return err
	}
	defer done()
	ranks, err := x.Model().Rank(ctx, &realizar.RankRequest{Query: *r.query, Documents: r.documents, Priority: -r.priority, Salt: r.salt})
	if err != nil {
		return server.OfField("documents", err)
	}
	a := rerankAnswer{Object: "list", Model: x.Name()}
	for i, rank := range ranks {
		a.Results = append(a.Results, rerankResult{Index: i, Score: rank.Scores[0]})
		a.Usage.PromptTokens += rank.Tokens
	}
	a.Usage.TotalTokens = a.Usage.PromptTokens
	slices.SortStableFunc(a.Results, func(x, y rerankResult) int { return cmp.Compare(y.Score, x.Score) })
	if r.top > 0 {
		a.Results = a.Results[:min(r.top, len(a.Results))]
	}
	if r.returned {
		for i := range a.Results {
			a.Results[i].Document = &rankedText{Text: r.documents[a.Results[i].Index]}
		}
	}
	x.Note(slog.Int("documents", len(ranks)), slog.Int("prompt_tokens", a.Usage.PromptTokens))
	return x.JSON(&a)
}

// checkRerank refuses what is not there or does not go with the model.
func checkRerank(x *server.Exchange, r *rerankRequest) error {
	switch n := x.Model().Labels(); {
	case r.query == nil:
		return fields.Missing("query")
	case len(r.documents) == 0:
		return fields.Missing("documents")
	case n > 1:
		return &server.Error{Status: http.StatusUnprocessableEntity, Code: "unsuited_model", Message: fmt.Sprintf("the model gives a document %d scores, one for each of its labels, and documents are ranked by one", n)}
	}
	return nil
}
