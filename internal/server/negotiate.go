package server

import (
	"mime"
	"strconv"
	"strings"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/query"
)

// format is an output format that a client can request.
type format struct {
	media, name string
	form        query.Form
}

// formats lists all formats in order of preference.
var formats = []format{ //nolint:gochecknoglobals // read only
	{"application/json", "json", query.Rows},
	{"application/vnd.apache.arrow.stream", "arrow", query.Arrow},
	{"text/csv", "csv", query.CSV},
	{"application/vnd.apache.parquet", "parquet", query.Parquet},
	{ndjson, "ndjson", query.Rows},
}

const ndjson = "application/x-ndjson"

// negotiate returns the format that the client prefers; of equally preferred ones, the first in formats.
func negotiate(accept []string) (media string, form query.Form, err error) {
	const ofStatements = 4 // the first entries of formats, those that a statement can return

	best := 0.0

	for _, offered := range formats[:ofStatements] {
		if q := quality(accept, offered.media); q > best {
			best, media, form = q, offered.media, offered.form
		}
	}

	if best == 0 {
		return "", "", fault.New(fault.NotAcceptable, "Accept allows none of the formats of rows. Set it to application/json, application/vnd.apache.arrow.stream, text/csv or application/vnd.apache.parquet, or leave it out for JSON.")
	}

	return media, form, nil
}

// quality returns how much a client prefers a media type: an exact name takes precedence over a pattern.
func quality(accept []string, media string) float64 {
	if len(accept) == 0 {
		accept = []string{"application/json, */*;q=0.1"}
	}

	kind, _, _ := strings.Cut(media, "/")
	precisions := map[string]int{"*/*": 0, kind + "/*": 1, media: 2}
	preferred, highest := 0.0, -1

	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		name, parameters, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}

		precision, fits := precisions[name]
		if !fits || precision < highest {
			continue
		}

		q := 1.0
		if given, ok := parameters["q"]; ok {
			if q, err = strconv.ParseFloat(given, 64); err != nil {
				q = 0
			}
		}

		preferred, highest = q, precision
	}

	return preferred
}
