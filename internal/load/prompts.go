package load

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
)

// Streams of random numbers of one seed. The stream of a request is its number.
const (
	arrivals = math.MaxUint64 - iota
	beginnings
	blocks // of traces; each block has its own stream
)

// A writer writes requests. The same number gives the same request under a seed, in whatever order
// requests are sent.
type writer struct {
	options *Options
	fields  map[string]any
	ids     []int32 // that prompts are made of; if none, they are made of words
	// Tokens per word, as the server counts; 1 if it does not say.
	tokensPerWord float64
	shared        []prompt // common beginnings
}

// A prompt is text or ids.
type prompt struct {
	words []string
	ids   []int32
}

// A request is the body of a request to send.
type request struct{ body []byte }

func newWriter(ctx context.Context, c *Client, o *Options) (*writer, error) {
	w := &writer{options: o, tokensPerWord: 1}
	ids, err := c.tokenize(ctx, o.Model, strings.Join(words, " "))
	if err != nil {
		return nil, err
	}
	if len(ids) > 0 {
		w.tokensPerWord = float64(len(ids)) / float64(len(words))
		if o.Endpoint == Completions {
			w.ids = ids
		}
	}
	w.fields = map[string]any{"model": o.Model, "stream": true, "stream_options": map[string]any{"include_usage": true}}
	if o.Shared > 0 {
		random := rand.New(rand.NewPCG(o.Seed, beginnings))
		for range o.Prefixes {
			w.shared = append(w.shared, w.prompt(random, o.Shared))
		}
	}
	if _, err := json.Marshal(o.Fields); err != nil {
		return nil, optionsErrorf("the fields for every request: %w", err)
	}
	return w, nil
}

// prompt returns random words or ids: exactly that many ids, or words of about that many tokens.
func (w *writer) prompt(random *rand.Rand, tokens int) prompt {
	var p prompt
	if w.ids != nil {
		for range tokens {
			p.ids = append(p.ids, w.ids[random.IntN(len(w.ids))])
		}
		return p
	}
	for range max(1, int(math.Round(float64(tokens)/w.tokensPerWord))) {
		p.words = append(p.words, words[random.IntN(len(words))])
	}
	return p
}

func (w *writer) request(i int) *request {
	random := rand.New(rand.NewPCG(w.options.Seed, uint64(i)))
	var p prompt
	if len(w.shared) > 0 {
		begin := w.shared[random.IntN(len(w.shared))]
		p.words, p.ids = append(p.words, begin.words...), append(p.ids, begin.ids...)
	}
	add := func(part prompt) { p.words, p.ids = append(p.words, part.words...), append(p.ids, part.ids...) }
	body := maps.Clone(w.fields)
	if t := w.options.Trace; t != nil {
		a := &t.Arrivals[i]
		left := a.Prompt
		for _, hash := range a.Blocks {
			n := min(left, traceBlock)
			add(w.prompt(rand.New(rand.NewPCG(w.options.Seed^hash, blocks)), n))
			left -= n
		}
		if left > 0 {
			add(w.prompt(random, left))
		}
		body["max_tokens"] = a.Answer
	} else {
		add(w.prompt(random, w.options.Prompt.draw(random)))
		body["max_tokens"] = w.options.Answer.draw(random)
	}
	text := strings.Join(p.words, " ")
	switch {
	case w.options.Endpoint == Chat:
		body["messages"] = []map[string]string{{"role": "user", "content": text}}
	case p.ids != nil:
		body["prompt"] = p.ids
	default:
		body["prompt"] = text
	}
	for name, v := range w.options.Fields {
		if body[name] = v; v == nil {
			delete(body, name)
		}
	}
	b, _ := json.Marshal(body) // numbers, texts, and fields that were marshaled before
	return &request{body: b}
}

// words are common and short, so that most vocabularies have each as one token.
var words = strings.Fields(`
the and you that was for are with his they this have from one had word but not what all were when your can said
there use each which she how their will other about out many then them these some her would make like him into
time has look two more write see number way could people than first water been call who its now find long down
day did get come made may part over new sound take only little work know place year live back give most very
after thing our just name good sentence man think say great where help through much before line right too mean
old any same tell boy follow came want show also around form three small set put end does another well large
must big even such because turn here why ask went men read need land different home move try kind hand picture
again change off play spell air away animal house point page letter mother answer found study still learn should
world high every near add food between own below country plant last school father keep tree never start city
earth eye light thought head under story saw left few while along might close something seem next hard open
example begin life always those both paper together got group often run important until children side feet car
mile night walk white sea began grow took river four carry state once book hear stop without second later miss
idea enough eat face watch far really almost let above girl sometimes mountain cut young talk soon list song
being leave family body music color stand sun question fish area mark dog horse bird problem complete room knew
since ever piece told usually friend easy heard order red door sure become top ship across today during short
better best however low hour black product happen whole measure remember early wave reach listen wind rock
space cover fast several hold himself toward five step morning pass vowel true hundred against pattern slow
map farm pull draw voice seen cold cry plan notice south sing war ground fall king town unit figure certain
field travel wood fire upon`)
