package mcp

import (
	"quern.dev/quern/internal/query"
)

type foundValues struct {
	Matches    []foundValue `json:"matches"`
	Incomplete []string     `json:"incomplete,omitempty"`
	Hint       string       `json:"hint,omitempty"`
}

type foundValue struct {
	Words    string  `json:"words"` // of the text
	Dataset  string  `json:"dataset"`
	Column   string  `json:"column"`
	Value    string  `json:"value"`
	RowCount int64   `json:"rowCount"`
	Match    string  `json:"match"`
	Score    float64 `json:"score"`
}

func (s *Server) findValues(call *invocation) (any, error) {
	in, text := call.args.namespace(), call.args.text("text", maxQuestion)
	want := query.MatchRequest{Username: in.Username, Namespace: in.Namespace, Question: text, Datasets: call.args.list("datasets")}

	if err := call.args.check(); err != nil {
		return nil, err
	}

	found, err := s.Query.Match(call, call.who, want)
	if err != nil {
		return nil, absent(err, "There is no such namespace or dataset that you can see. Call list_datasets.")
	}

	shown, left := foundValues{Matches: []foundValue{}}, newBudget()

	for _, m := range found.Matches {
		value, cut := shorten(m.Value, maxCell)
		one := foundValue{
			Words: clip(text[m.Start:m.End], maxText), Dataset: m.Dataset, Column: m.Column, Value: value, RowCount: m.Count, Match: string(m.How), Score: m.Score,
		}

		if !left.take(one) {
			shown.Hint = "Not all matches are shown. Look up fewer words."

			break
		}

		if shown.Matches = append(shown.Matches, one); cut {
			shown.Hint = "Values that end with " + ellipsis + " were cut."
		}
	}

	for _, name := range found.Incomplete {
		if left.take(name) {
			shown.Incomplete = append(shown.Incomplete, name)
		}
	}

	switch {
	case found.Truncated:
		shown.Hint = "Not all datasets were searched. Name some in datasets."
	case len(shown.Matches) == 0 && shown.Hint == "":
		shown.Hint = "No value matches. Datasets in incomplete have not been indexed yet."
	}

	return shown, nil
}
