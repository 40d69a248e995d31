package server

// routes are all that is served. Those of the first group want no key: they are what
// machines ask that watch over the process.
func (s *Server) routes() {
	s.handleOpen("GET /health", s.health)
	s.handleOpen("GET /ready", s.ready)
	s.handleOpen("GET /metrics", s.metrics.show)

	s.handle("GET /v1/models", s.models)
	s.handle("GET /v1/models/{id...}", s.modelNamed)

	s.handle("POST /v1/chat/completions", s.chatCompletions)
	s.handle("POST /v1/completions", s.completions)
	s.handle("POST /v1/chat/completions/render", s.render)
	s.handle("POST /v1/responses", s.responses)
	s.handle("POST /v1/embeddings", s.embeddings)
	s.handle("POST /v1/rerank", s.rerank)
	s.handle("POST /rerank", s.rerank)

	s.handle("POST /tokenize", s.tokenize)
	s.handle("POST /detokenize", s.detokenize)

	s.mux.HandleFunc("/", s.run(func(_ *exchange) error { return errNotFound }))
}
