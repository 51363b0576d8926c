package job

import (
	"context"
	"encoding/json"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"quern.dev/quern/internal/span"
)

// metadata is what a job says about its insertion. Versions that do not know a member ignore it.
type metadata struct {
	Cause string `json:"quern_cause,omitempty"` // the span that inserted the job, as span.Parent returns it
}

// caused returns the options of a job with the span of ctx. It does not change opts, which may belong to all jobs of a kind.
func caused(ctx context.Context, opts *river.InsertOpts) *river.InsertOpts {
	if !span.Sent(ctx) {
		return opts
	}

	with := river.InsertOpts{}
	if opts != nil {
		with = *opts
	}

	if len(with.Metadata) == 0 {
		with.Metadata, _ = json.Marshal(metadata{Cause: span.Parent(ctx)}) //nolint:errchkjson // a string alone
	}

	return &with
}

func cause(row *rivertype.JobRow) string {
	var m metadata

	_ = json.Unmarshal(row.Metadata, &m) // a job without a cause has a trace without a link

	return m.Cause
}
