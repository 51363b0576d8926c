package duckdb

import (
	"path/filepath"

	"quern.dev/quern/internal/engine"
)

// mergeFiles writes the rows of several data files to one file, in their order. Values are not changed; JSON stays
// text.
func (p *program) mergeFiles(request engine.MergeRequest) (merged engine.Converted, err error) {
	if err := p.db.limit(request.Memory, request.Threads); err != nil {
		return merged, err
	}

	var same projection
	for _, c := range request.View.Columns {
		same.add(c, name(c.Name))
	}

	merged.Rows, err = p.copy(same, p.filesOf(request.View), "true", filepath.Join(p.tmp, filepath.Base(request.Output)))

	return merged, explain(err)
}
