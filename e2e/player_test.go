package e2e

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// scenario is a series of requests with their expected answers.
type scenario struct {
	name     string
	settings []string // if not nil, the scenario has its own service with these settings
	steps    []step
}

// step is one request with its whole answer, or one operator's command, or one change of the database.
//
// Texts contain placeholders. <x kind> binds x, and later <x> is replaced by its value: in addresses, in bodies that are sent and
// in answers. The kinds are listed at bindings. In texts that are sent only the kind now is possible.
type step struct {
	as     string   // empty: no token; <x>: that token; "name by way": sign-in at Keycloak; "name", "subject:name" or "name in group": a signed token
	do     string   // "METHOD address", below /api/v1 if it starts with a slash, or "quernd arguments", or "sql statement"
	header []string // of the request
	body   string
	status int      // of a command: 0, or 1 for one that fails
	want   string   // the whole body, JSON compared by value; of a command: its output, or its error
	shows  []string // headers of the answer, "Name: value"; without a value the header must be absent
}

// playAll plays scenarios on a shared service, or on their own service if they have settings.
func playAll(t *testing.T, shared *service, key *signer, scenarios []scenario) {
	t.Helper()

	for _, scenario := range scenarios {
		t.Run(scenario.name, func(t *testing.T) {
			t.Parallel()

			p := &player{service: shared, key: key}
			if scenario.settings != nil {
				p.service = start(t, append(scenario.settings, "QUERN_OIDC_ISSUER="+shared.realm.issuer())...)
			}

			p.bound = bindings{"root": p.service.root, "admin": p.service.admin}

			for _, step := range scenario.steps {
				p.play(t, step)
			}
		})
	}
}

// player plays the steps of one scenario.
type player struct {
	service *service
	key     *signer
	bound   bindings
}

func (p *player) play(t *testing.T, step step) {
	t.Helper()

	method, address, _ := strings.Cut(p.bound.fill(t, step.do), " ")
	switch method {
	case "quernd":
		p.command(t, step, strings.Fields(address))

		return
	case "sql":
		p.service.exec(address)

		return
	}

	if strings.HasPrefix(address, "/") {
		address = p.service.url + address
	}

	var headers []string
	for _, header := range step.header {
		headers = append(headers, p.bound.fill(t, header))
	}

	answer := call(t, method, address, p.token(t, step.as), p.bound.fill(t, step.body), headers...)
	require.Equal(t, step.status, answer.status, "%s as %q: %s", step.do, step.as, answer.body)

	for _, header := range step.shows {
		name, value, _ := strings.Cut(header, ": ")
		require.Equal(t, value, answer.header.Get(name), "%s: %s", step.do, name)
	}

	if step.want == "" {
		require.Empty(t, answer.body, step.do)

		return
	}

	require.Equal(t, "application/json", answer.header.Get("Content-Type"))

	var want, got any
	require.NoError(t, json.Unmarshal([]byte(step.want), &want), step.want)
	answer.json(t, &got)
	require.Equal(t, p.bound.match(t, want, got), got, step.do)
}

// token returns the bearer token for the caller of a step.
func (p *player) token(t *testing.T, as string) string {
	t.Helper()

	if as == "" || strings.HasPrefix(as, "<") {
		return p.bound.fill(t, as)
	}

	if user, way, given := strings.Cut(as, " by "); given {
		realm := *p.key.realm
		realm.t, realm.shared = t, nil // every sign-in is a new one

		return map[string]func(string) string{
			"password": realm.password,
			"code":     func(user string) string { return realm.codePKCE(user).Access },
			"implicit": func(user string) string { return realm.implicit(user).Access },
			"ID token": func(user string) string { return realm.tokens(user).ID },
		}[way](user)
	}

	as, group, isMember := strings.Cut(as, " in ")

	subject, name, given := strings.Cut(as, ":")
	if !given {
		name = subject
	}

	claims := p.key.claims(subject)
	claims["preferred_username"] = name

	if isMember {
		claims["groups"] = []string{group}
	}

	return p.key.sign(claims)
}

func (p *player) command(t *testing.T, step step, args []string) {
	t.Helper()

	printed, err := p.service.command(args...)
	if step.status != 0 {
		require.EqualError(t, err, step.want)

		return
	}

	require.NoError(t, err, step.do)

	// Match the output with a pattern in which each placeholder is a group, and bind the groups.
	var (
		pattern      strings.Builder
		placeholders []string
		rest         = step.want
	)

	for at := placeholder.FindStringIndex(rest); at != nil; at = placeholder.FindStringIndex(rest) {
		pattern.WriteString(regexp.QuoteMeta(rest[:at[0]]) + `(\S+)`)
		placeholders = append(placeholders, rest[at[0]:at[1]])
		rest = rest[at[1]:]
	}

	found := regexp.MustCompile("^" + pattern.String() + regexp.QuoteMeta(rest) + "$").FindStringSubmatch(printed)
	require.NotNil(t, found, "%s\nwanted: %s\nprinted: %s", step.do, step.want, printed)

	for i, want := range placeholders {
		require.Equal(t, p.bound.match(t, want, found[i+1]), found[i+1], step.do)
	}
}

// bindings are the values of the placeholders of a scenario.
type bindings map[string]string

var placeholder = regexp.MustCompile(`<([\w-]+)(?: (uuid|token|text|key|signed|any|now|absent|route|owner)([+-][0-9hms]+)?)?>`)

// fill replaces the placeholders in a text that is sent.
func (b bindings) fill(t *testing.T, text string) string {
	t.Helper()

	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		part := placeholder.FindStringSubmatch(found)
		if part[2] == "now" {
			b[part[1]] = time.Now().Add(offset(t, part[3])).UTC().Truncate(time.Second).Format(time.RFC3339)
		}

		require.Contains(t, b, part[1], "nothing is bound to %s", found)

		return b[part[1]]
	})
}

// match returns the wanted value with its placeholders replaced by their bound values. It binds new ones to the values of got.
func (b bindings) match(t *testing.T, want, got any) any {
	t.Helper()

	switch want := want.(type) {
	case map[string]any:
		got, _ := got.(map[string]any)
		for key := range want {
			want[key] = b.match(t, want[key], got[key])
		}

		return want
	case []any:
		got, _ := got.([]any)
		for i := range min(len(want), len(got)) {
			want[i] = b.match(t, want[i], got[i])
		}

		return want
	case string:
		part := placeholder.FindStringSubmatch(want)
		if part == nil || part[0] != want {
			return want
		}

		if text, isText := got.(string); isText && part[2] != "" {
			b.bind(t, part[1], part[2], part[3], text)
		}

		return b[part[1]]
	default:
		return want
	}
}

// bind checks that the text is of the kind and binds it.
func (b bindings) bind(t *testing.T, name, kind, ahead, text string) {
	t.Helper()

	switch kind {
	case "uuid":
		id, err := uuid.Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, id.String(), text)
	case "token":
		require.Regexp(t, `^quern_[0-9A-Za-z]{33}$`, text)
	case "text":
		require.Equal(t, url.QueryEscape(text), text, "it can stand in an address as it is")
	case "key":
		require.Regexp(t, `^uploads/\d{4}-\d\d-\d\d/[0-9a-f-]{36}$`, text)
	case "absent":
		require.Regexp(t, absentMessage, text)
	case "route":
		require.Regexp(t, `^There is no operation with this path\. .*All paths begin with /api/v1/; /api/v1/docs lists them\.$`, text)
	case "owner":
		require.Regexp(t, `^Only \S+ may do this, and you are \S+\. Write \S+ or self in the path for what you own\.$`, text)
	case "signed":
		require.Regexp(t, `^http://.*X-Amz-Expires=3600&.*X-Amz-Signature=[0-9a-f]{64}$`, text)
	case "now":
		at, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(text, "Z"), "%s is not in UTC", text)
		require.WithinDuration(t, time.Now().Add(offset(t, ahead)), at, patience)
	}

	b[name] = text
}

func offset(t *testing.T, text string) time.Duration {
	t.Helper()

	if text == "" {
		return 0
	}

	ahead, err := time.ParseDuration(text)
	require.NoError(t, err)

	return ahead
}
