package server

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"slices"

	"github.com/realizar/realizar"
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

var rerankFields = fields[rerankRequest]{
	text("model", "", func(r *rerankRequest) *string { return &r.model }),
	{"query", "a string", "", func(r *rerankRequest, value json.RawMessage) error {
		r.query = new("")
		return readText(value, r.query)
	}},
	{"documents", "a list of 1 to 2048 strings, or objects of a text", "", func(r *rerankRequest, value json.RawMessage) (err error) {
		r.documents, err = readDocuments(value)
		return err
	}},
	whole("top_n", "all documents", 1, math.MaxInt32, func(r *rerankRequest) *int { return &r.top }),
	flag("return_documents", "false", func(r *rerankRequest) *bool { return &r.returned }),
	whole("priority", "0; lower ones go first", -math.MaxInt32, math.MaxInt32, func(r *rerankRequest) *int { return &r.priority }),
	text("cache_salt", "none", func(r *rerankRequest) *string { return &r.salt }),
	ignored[rerankRequest]("user"),
}

// A rankedText is a document as an object, of a request or of an answer.
type rankedText struct {
	Text string `json:"text"`
}

var rankedTextFields = fields[rankedText]{
	text("text", "", func(d *rankedText) *string { return &d.Text }),
}

// readDocuments reads the texts of documents.
func readDocuments(value json.RawMessage) ([]string, error) {
	list, err := elements(value)
	if err != nil || len(list) == 0 || len(list) > maxInputs {
		return nil, errWrong
	}
	documents := make([]string, len(list))
	for i, one := range list {
		at := fmt.Sprintf("documents[%d]", i)
		if one[0] != '{' {
			if err := readText(one, &documents[i]); err != nil {
				return nil, named(err, at, "a string, or an object of a text", one)
			}
			continue
		}
		named := false
		var d rankedText
		if err := rankedTextFields.decode(&d, one, at); err != nil {
			return nil, err
		}
		if err := members(one, at, func(name string, v json.RawMessage) error {
			named = named || name == "text" && !isNull(v)
			return nil
		}); err != nil {
			return nil, err
		}
		if !named {
			return nil, missing(at + ".text")
		}
		documents[i] = d.Text
	}
	return documents, nil
}

// A rerankAnswer is the answer: the best documents, the best first.
type rerankAnswer struct {
	Object  string          `json:"object"`
	Model   string          `json:"model"`
	Results []rerankResult  `json:"results"`
	Usage   embeddingsUsage `json:"usage"`
}

type rerankResult struct {
	Index    int         `json:"index"`
	Score    float32     `json:"relevance_score"`
	Document *rankedText `json:"document,omitempty"`
}

// rerank is POST /v1/rerank.
func (s *Server) rerank(x *exchange) error {
	if err := x.noWatch(); err != nil {
		return err
	}
	data, err := s.body(x)
	if err != nil {
		return err
	}
	s.notePrompt(x, data)
	var r rerankRequest
	if err := rerankFields.decode(&r, data, ""); err != nil {
		return err
	}
	if err := s.checkRerank(&r); err != nil {
		return err
	}
	ctx, done, err := s.begin(x, len(r.documents))
	if err != nil {
		return err
	}
	defer done()
	ranks, err := s.model.Rank(ctx, &realizar.RankRequest{Query: *r.query, Documents: r.documents, Priority: -r.priority, Salt: r.salt})
	if err != nil {
		return ofField("documents", err)
	}
	a := rerankAnswer{Object: "list", Model: s.config.Names[0]}
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
	x.note(slog.Int("documents", len(ranks)), slog.Int("prompt_tokens", a.Usage.PromptTokens))
	return x.answer(&a)
}

// checkRerank refuses what is not there or does not go with the model.
func (s *Server) checkRerank(r *rerankRequest) error {
	if err := s.checkModel(r.model); err != nil {
		return err
	}
	switch n := s.model.Labels(); {
	case r.query == nil:
		return missing("query")
	case len(r.documents) == 0:
		return missing("documents")
	case n > 1:
		return &Error{Status: http.StatusUnprocessableEntity, Code: "unsuited_model", Message: fmt.Sprintf("the model gives a document %d scores, one for each of its labels, and documents are ranked by one", n)}
	}
	return nil
}
