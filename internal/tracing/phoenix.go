package tracing

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

// phoenix stores a rating as an annotation of the trace. Phoenix has one annotation for each name, trace and identifier, so
// a later annotation replaces an earlier one.
type phoenix struct{ *Tracing }

type annotation struct {
	TraceID       string            `json:"trace_id"`
	Name          string            `json:"name"`
	AnnotatorKind string            `json:"annotator_kind"`
	Identifier    string            `json:"identifier"`
	Result        annotationResult  `json:"result"`
	Metadata      map[string]string `json:"metadata"`
}

type annotationResult struct {
	Label       string  `json:"label"`
	Score       float64 `json:"score"`
	Explanation *string `json:"explanation"`
}

// waits is the number of attempts while the spans of the trace may still arrive. After that, put sends a root span itself.
const waits = 4

func (p phoenix) put(ctx context.Context, rating Rating) error {
	one := annotation{
		TraceID: hexOf(rating.Run.TraceID), Name: scoreName, AnnotatorKind: "HUMAN", Identifier: identifier(rating.Run),
		Result: annotationResult{Label: "thumbs-down"}, Metadata: map[string]string{"run_id": rating.Run.ID},
	}
	if *rating.Up {
		one.Result = annotationResult{Label: "thumbs-up", Score: 1}
	}

	if rating.Comment != "" {
		one.Result.Explanation = &rating.Comment
	}

	for tries := 1; ; tries++ {
		var made struct{ Data []struct{ ID string } }

		err := p.call(ctx, http.MethodPost, "/v1/trace_annotations?sync=true", map[string][]annotation{"data": {one}}, &made)
		if err == nil && len(made.Data) != 1 {
			err = errors.New("the response does not name the created annotation")
		}

		if !errors.Is(err, errAbsent) {
			return err
		}

		if tries == waits {
			p.root(ctx, rating.Run)
		}

		if !pause(ctx, rateAgain) {
			return errors.New("the store does not have the trace")
		}
	}
}

// root sends a root span for the trace, because the spans of the run are lost.
func (p phoenix) root(ctx context.Context, run Run) {
	run.Question = ""
	_, span := p.Agent(ctx, run)
	span.span.End()

	_ = p.provider.ForceFlush(ctx) // the next attempt shows whether the trace exists
}

func (p phoenix) remove(ctx context.Context, rating Rating) error {
	which := url.Values{"name": {scoreName}, "identifier": {identifier(rating.Run)}, "delete_all": {"true"}}

	err := p.call(ctx, http.MethodDelete, "/v1/projects/"+url.PathEscape(p.config.Project)+"/trace_annotations?"+which.Encode(), nil, nil)
	if errors.Is(err, errAbsent) { // the project does not exist
		return nil
	}

	return err
}

// identifier returns the identifier of the annotation of a run. It includes the trace id, because annotations can be
// deleted by identifier but not by trace.
func identifier(run Run) string { return hexOf(run.TraceID) + ":" + run.User }
