package tracing

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

// phoenix keeps a rating as an annotation of the trace. It has one for each name, trace and identifier, so a later one
// replaces the earlier.
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

// waits is how often it is asked for a trace whose spans are on their way, before it gets a root from here.
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
			err = errors.New("it did not say what it made")
		}

		if !errors.Is(err, errAbsent) {
			return err
		}

		if tries == waits {
			p.root(ctx, rating.Run)
		}

		if !pause(ctx, rateAgain) {
			return errors.New("it does not know the trace")
		}
	}
}

// root gives the trace a root, because what the run sent is lost.
func (p phoenix) root(ctx context.Context, run Run) {
	run.Question = ""
	_, span := p.Agent(ctx, run)
	span.span.End()

	_ = p.provider.ForceFlush(ctx) // seen by whether the trace is known then
}

func (p phoenix) remove(ctx context.Context, rating Rating) error {
	which := url.Values{"name": {scoreName}, "identifier": {identifier(rating.Run)}, "delete_all": {"true"}}

	err := p.call(ctx, http.MethodDelete, "/v1/projects/"+url.PathEscape(p.config.Project)+"/trace_annotations?"+which.Encode(), nil, nil)
	if errors.Is(err, errAbsent) { // there is not even the project
		return nil
	}

	return err
}

// identifier begins with the trace, because annotations are deleted by it and not by their trace.
func identifier(run Run) string { return hexOf(run.TraceID) + ":" + run.User }
