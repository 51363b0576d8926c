package a2a

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/lexicon"
	"quern.dev/quern/internal/run"
)

// maxRows is the most rows that an artifact has; a run stores no more in its log.
const maxRows = 1000

// metadataKeys returns the keys of the metadata of a message that have a meaning, in the order of the documentation.
func metadataKeys() []string {
	return []string{"namespace", "datasets", "helperPrompt", "model", "provider", "asOf", "timeZone", "maxRows"}
}

// checkKeys refuses keys without a meaning, which are likely misspelt. A key that belongs to another extension is a URI or
// has a prefix, so it is ignored.
func checkKeys(metadata map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		if slices.Contains(metadataKeys(), key) || strings.ContainsAny(key, ":/.") {
			continue
		}

		known := "the keys are " + strings.Join(metadataKeys(), ", ")
		if near := lexicon.Nearest(key, metadataKeys()); len(near) > 0 {
			known = "did you mean " + strings.Join(near, " or ") + "?"
		}

		return invalidField("message.metadata."+key, "is not a key of this agent; "+known)
	}

	return nil
}

// fill sets the scope and the options of a question from the metadata of a message.
func (h handler) fill(ctx context.Context, metadata map[string]any, q *run.Question) error {
	var asOf, namespace string

	for _, field := range []struct {
		name string
		to   *string
		most int
	}{
		{"namespace", &namespace, maxPath},
		{"helperPrompt", &q.HelperPrompt, maxQuestion},
		{"model", &q.Model, maxName},
		{"provider", &q.Provider, maxName},
		{"timeZone", &q.TimeZone, maxZone},
		{"asOf", &asOf, maxZone},
	} {
		value, given := metadata[field.name]
		if !given || value == nil {
			continue
		}

		words, isText := value.(string)
		if !isText || words == "" || utf8.RuneCountInString(words) > field.most {
			return invalidField("message.metadata."+field.name, fmt.Sprintf("must be a string of 1 to %d characters", field.most))
		}

		*field.to = words
	}

	if asOf != "" {
		var err error
		if q.AsOf, err = time.Parse(time.RFC3339Nano, asOf); err != nil {
			return invalidField("message.metadata.asOf", "must be an RFC 3339 time")
		}
	}

	var err error
	if q.Datasets, err = datasets(metadata["datasets"]); err != nil {
		return err
	}

	if q.MaxRows, err = rowLimit(metadata["maxRows"]); err != nil {
		return err
	}

	q.Username, q.Namespace, err = h.target(ctx, namespace)

	return err
}

// rowLimit returns how many rows an artifact may have; 0 if the message does not say it.
func rowLimit(value any) (int, error) {
	if value == nil {
		return 0, nil
	}

	limit, isNumber := value.(float64)
	if !isNumber || limit != math.Trunc(limit) || limit < 1 || limit > maxRows {
		return 0, invalidField("message.metadata.maxRows", fmt.Sprintf("must be a whole number from 1 to %d", maxRows))
	}

	return int(limit), nil
}

func datasets(value any) (names []string, err error) {
	list, isList := value.([]any)
	if value != nil && !isList || len(list) > maxDatasets {
		return nil, invalidField("message.metadata.datasets", "must be a list of at most 20 names")
	}

	for _, one := range list {
		name, isText := one.(string)
		if !isText || name == "" || len(name) > maxPath {
			return nil, invalidField("message.metadata.datasets", "must be a list of names")
		}

		names = append(names, name)
	}

	return names, nil
}

// target returns the namespace of a question: the named one or, without a name, the only one that a restricted token can
// access.
func (h handler) target(ctx context.Context, name string) (username, namespace string, err error) {
	if name == "" {
		return h.onlyTarget(ctx)
	}

	username, namespace, isPath := strings.Cut(name, "/")
	if !isPath {
		username, namespace = auth.Self, name
	}

	if strings.EqualFold(username, auth.Self) {
		username = h.who.Username
	}

	if catalog.CheckName("", namespace) != nil {
		return "", "", noNamespace()
	}

	return strings.ToLower(username), namespace, nil
}

func noNamespace() error {
	return invalidField("message.metadata.namespace", "is not a namespace that you can see")
}

func (h handler) onlyTarget(ctx context.Context) (username, namespace string, err error) {
	if h.who.Token != nil && h.who.Token.Restricted {
		paths, err := h.Catalog.Paths(ctx, h.who, h.who.Token.Targets)
		if err != nil {
			return "", "", err
		}

		for i := range paths {
			paths[i].Dataset = ""
		}

		if paths = slices.Compact(paths); len(paths) == 1 {
			return paths[0].Username, paths[0].Namespace, nil
		}
	}

	names, err := h.namespaces(ctx)
	if err != nil {
		return "", "", err
	}

	missing := invalidField("message.metadata.namespace", "is required; you can see: "+strings.Join(names, ", "))
	missing.Message = "message metadata.namespace is required"

	return "", "", missing.WithErrorInfoMeta(map[string]string{"namespaces": strings.Join(names, ",")})
}
