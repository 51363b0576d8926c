package server

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/lexicon"
)

// resource says how a message names what a parameter of a path stands for, and where its values come from. Names in braces
// are parameters of the path.
type resource struct {
	name string
	from string
}

// resources returns the resource of each parameter of a path, by the name of the parameter.
func resources() map[string]resource {
	return map[string]resource{
		"username":       {`user "{username}"`, "GET /user/me shows your own username."},
		"namespace":      {`namespace "{username}/{namespace}"`, "GET /schema/{username}/namespaces lists those that you can see."},
		"datasetName":    {`dataset "{username}/{namespace}/{datasetName}"`, "GET /schema/{username}/{namespace}/datasets lists those that you can see."},
		"ingestionId":    {`ingestion "{ingestionId}" of "{username}/{namespace}/{datasetName}"`, "GET /data/{username}/{namespace}/{datasetName}/ingestions lists the ingestions."},
		"recordId":       {`record "{recordId}" of the ingestion "{ingestionId}" of "{username}/{namespace}/{datasetName}"`, "GET /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/records lists the records."},
		"fieldName":      {`record "{recordId}" of the ingestion "{ingestionId}" of "{username}/{namespace}/{datasetName}"`, "GET /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/records lists the records."},
		"snapshotId":     {`snapshot "{snapshotId}" of "{username}/{namespace}/{datasetName}"`, "GET /data/{username}/{namespace}/{datasetName}/snapshots lists the snapshots."},
		"sessionId":      {`upload session "{sessionId}"`, "GET /file-upload lists your sessions, and POST /file-upload/prepare begins one."},
		"fileId":         {`file "{fileId}" in an upload session "{sessionId}"`, "GET /file-upload/{sessionId} lists the files of a session."},
		"runId":          {`run "{runId}"`, "GET /query/runs lists your runs, and POST /query/ask begins one."},
		"n":              {`step "{n}" of a run "{runId}"`, "GET /query/runs/{runId} shows the steps of a run."},
		"statementId":    {`long statement "{statementId}"`, "GET /query/statements lists yours."},
		"piece":          {`piece "{piece}" of a long statement "{statementId}"`, "GET /query/statements/{statementId}/pieces lists its pieces."},
		"conversationId": {`conversation "{conversationId}"`, "GET /query/conversations lists yours."},
		"id":             {`API token "{id}"`, "GET /user/tokens lists yours."},
		"verifiedId":     {`verified question "{verifiedId}" of "{username}/{namespace}"`, "GET /verified/{username}/{namespace} lists those that you can see."},
		"benchmarkId":    {`benchmark "{benchmarkId}" of "{username}/{namespace}"`, "GET /benchmarks/{username}/{namespace} lists those that you can see."},
		"connectionId":   {`connection "{connectionId}"`, "GET /connections lists those that you may use."},
		"sourceId":       {`source "{sourceId}"`, "GET /sources lists yours."},
		"webhookId":      {`webhook "{webhookId}"`, "GET /webhooks lists yours."},
		"deletedId":      {`deleted dataset or namespace "{deletedId}"`, "GET /schema/deleted lists those that you can restore."},
		"agent":          {`agent "{agent}"`, "GET /a2a lists the agents."},
	}
}

// absent returns the message for a path that names something that does not exist or that the caller may not see. It repeats
// only the request, so the message is the same for both. It returns "" if the path has no parameter.
func (op *operation) absent(r *http.Request) string {
	var (
		last   string
		rule   string                                                 // broken by a name
		shown  = []string{"{username}/", "", "{username}", auth.Self} // for paths without a username
		linked = []string{"{username}", auth.Self}
	)

	for _, param := range op.params {
		if param.In != openapi3.ParameterInPath {
			continue
		}

		last = param.Name
		value, place := r.PathValue(last), "{"+last+"}"
		quoted := strconv.Quote(shortened(value))
		shown = append([]string{place, quoted[1 : len(quoted)-1]}, shown...)

		if checkParameter(param.Schema.Value, value) != nil {
			value = place // it has no address

			if param.Schema.Value.Pattern == objectName {
				rule = fmt.Sprintf(" %s cannot be a name: a name has 1 to 128 of the letters a-z and A-Z, digits, dots, underscores and hyphens, and begins with a letter or digit.", quoted)
			}
		} else {
			value = url.PathEscape(value)
		}

		linked = append([]string{place, value}, linked...)
	}

	if last == "" {
		return ""
	}

	what := resources()[last]

	return "There is no " + strings.NewReplacer(shown...).Replace(what.name) + " that you can see. " + strings.NewReplacer(linked...).Replace(what.from) + rule
}

// similar returns the path of the contract that is most similar to the path of a request, or "". Names that the caller
// chooses are not compared.
func (c *contract) similar(path string) string {
	var (
		best  string
		most  int
		given = segments(strings.TrimPrefix(path, basePath))
	)

	for _, known := range c.paths {
		if score := similarity(given, segments(known)); score > most {
			best, most = known, score
		}
	}

	return best
}

func segments(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(s string) bool { return s == "" })
}

// similarity returns 0 unless every fixed segment of a known path is equal to the given one or similar.
func similarity(given, known []string) (score int) {
	const equal, near = 3, 1

	if len(given) != len(known) {
		return 0
	}

	for i, segment := range known {
		switch {
		case strings.HasPrefix(segment, "{"):
		case segment == given[i]:
			score += equal
		case len(lexicon.Nearest(given[i], []string{segment})) > 0:
			score += near
		default:
			return 0
		}
	}

	return score
}
