package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// quotas is a user with a dataset, on two replicas.
type quotas struct {
	*filled

	one, two *service
	user     string
	asked    int
}

// next returns the replica for the next request.
func (u *quotas) next() *service {
	if u.asked++; u.asked%2 == 0 {
		return u.two
	}

	return u.one
}

// ask sends a question to the replicas in turn, and does not wait for the answer.
func (u *quotas) ask(headers ...string) *answer {
	u.t.Helper()

	return call(u.t, http.MethodPost, u.next().url+"/query/ask", u.bearer, u.script("nl2ql", "How many rows?", ""), append(headers, "Prefer: respond-async")...)
}

// concludes asks a question and waits for the end of its run.
func (u *quotas) concludes() (run concluded) {
	u.t.Helper()

	answer := call(u.t, http.MethodPost, u.next().url+"/query/ask", u.bearer, u.script("nl2ql", "How many rows?", ""), "Accept: application/json", "Prefer: wait=60")
	require.Equal(u.t, http.StatusOK, answer.status, answer.body)
	answer.json(u.t, &run)

	return run
}

func (u *quotas) limit(kind, amount string) {
	u.t.Helper()
	u.one.quernd("limit", "set", "--user", u.user, kind, amount)
}

// yesterday moves what the user used today to yesterday, as midnight does.
func (u *quotas) yesterday(kind string) {
	u.t.Helper()
	u.one.exec(`UPDATE usage SET day = day - 1 WHERE kind = $2 AND account_id = (SELECT account_id FROM directory_names WHERE username = $1)`, u.user, kind)
}

type usageItem struct {
	Kind     string
	Used     int64
	Limit    *int64
	Left     *int64
	ResetsAt *time.Time
}

// usage returns what the API says about a kind.
func (u *quotas) usage(kind string) usageItem {
	u.t.Helper()

	var found struct{ Items []usageItem }

	call(u.t, http.MethodGet, u.next().url+"/user/usage", u.bearer, "").json(u.t, &found)

	for _, item := range found.Items {
		if item.Kind == kind {
			return item
		}
	}

	return usageItem{Kind: kind}
}

// requireUsedUp checks the refusal for a limit of a day.
func requireUsedUp(t *testing.T, refused *answer, kind string) {
	t.Helper()
	require.Equal(t, http.StatusTooManyRequests, refused.status, refused.body)

	var body struct {
		ErrorCode string `json:"error_code"`
		Message   string
		SubErrors []struct{ Code, Message string } `json:"sub_errors"`
	}

	refused.json(t, &body)
	require.Equal(t, "RATE_LIMITED", body.ErrorCode)
	require.Len(t, body.SubErrors, 1, refused.body)
	require.Equal(t, "limit."+kind, body.SubErrors[0].Code)

	_, said, found := strings.Cut(body.SubErrors[0].Message, "resets at ")
	require.True(t, found, refused.body)
	resets, err := time.Parse(time.RFC3339, said)
	require.NoError(t, err)
	require.Equal(t, resets.UTC(), resets.UTC().Truncate(24*time.Hour), "midnight")
	require.Contains(t, body.Message, said)

	seconds, err := strconv.Atoi(refused.header.Get("Retry-After"))
	require.NoError(t, err)
	require.InDelta(t, time.Until(resets).Seconds(), seconds, 60)
}

// TestQuotas checks the limits that operators set: that they hold over two replicas, what a refusal says, and when counts begin again.
func TestQuotas(t *testing.T) {
	t.Parallel()

	m := newModel(t, func(said conversation) any {
		if strings.Contains(said.question(), "garbage") {
			return "no JSON"
		}

		return selects("SELECT count(*) AS count FROM orders")
	})
	settings := append(m.settings(), "QUERN_RUN_MAX_PER_USER=100", "QUERN_RUN_SECOND_OPINION=false")
	one := start(t, settings...)
	two := another(t, one, settings...)
	key := one.newKey()

	newUser := func(t *testing.T, name string, groups ...string) *quotas {
		t.Helper()

		claims := key.claims(name)
		if len(groups) > 0 {
			claims["groups"] = groups
		}

		u := &quotas{filled: newFilled(t, one, name, key.sign(claims)), one: one, two: two, user: name}
		require.Equal(t, http.StatusOK, u.post(`{"data": [{"n": 1}, {"n": 2}]}`).status)

		return u
	}

	t.Run("questions", func(t *testing.T) { t.Parallel(); quotaOfQuestions(t, newUser(t, "asks")) })
	t.Run("many questions at once", func(t *testing.T) { t.Parallel(); quotaOfRace(t, newUser(t, "races")) })
	t.Run("tokens", func(t *testing.T) { t.Parallel(); quotaOfTokens(t, newUser(t, "talks"), m) })
	t.Run("statements", func(t *testing.T) { t.Parallel(); quotaOfStatements(t, newUser(t, "selects")) })
	t.Run("stored bytes", func(t *testing.T) { t.Parallel(); quotaOfStore(t, newUser(t, "stores")) })
	t.Run("which limit applies", func(t *testing.T) {
		t.Parallel()
		quotaOfGroup(t, newUser(t, "belongs", "quota-staff", "quota-analysts"))
	})
}

func quotaOfQuestions(t *testing.T, u *quotas) {
	t.Helper()

	require.Equal(t, http.StatusAccepted, u.ask().status, "no limit, unless somebody sets one")
	require.Equal(t, "the limit of questions for user asks is 3\n", u.one.quernd("limit", "set", "--user", "asks", "questions", "3"))

	again := "Idempotency-Key: " + uuid.NewString()
	first, second := u.ask(again), u.ask(again)
	require.Equal(t, http.StatusAccepted, first.status, first.body)
	require.Equal(t, acceptedRun(t, first), acceptedRun(t, second), "the other replica returns the same run")
	require.EqualValues(t, 2, u.usage("questions").Used, "a repeated request is counted once")

	require.Equal(t, http.StatusAccepted, u.ask().status, "exactly the limit")
	requireUsedUp(t, u.ask(), "questions")
	requireUsedUp(t, u.ask(), "questions")
	require.Equal(t, acceptedRun(t, first), acceptedRun(t, u.ask(again)), "a request that was accepted is not refused when it is repeated")

	refused := newPeer(u.filled, "nl2ql")
	require.Contains(t, refused.call("SendMessage", refused.ask(uuid.NewString(), "How many rows?", "")).body, "resets at", "A2A has the same limits")

	shown := u.usage("questions")
	require.EqualValues(t, 3, shown.Used, "what was refused does not count")
	require.EqualValues(t, 3, *shown.Limit)
	require.EqualValues(t, 0, *shown.Left)
	require.Equal(t, time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1), shown.ResetsAt.UTC())
	require.Regexp(t, `(?m)^questions +3 +3 +0 +20`, u.one.signedIn(t, u.bearer).run("usage"))
	require.Regexp(t, `(?m)^questions +3 +3 +20`, u.one.quernd("limit", "show", "--user", "asks"))
	require.Contains(t, call(t, http.MethodGet, u.one.admin+"/metrics", "", "").body, `quern_limit_refused_total{kind="questions"}`)

	u.yesterday("questions")
	require.Equal(t, http.StatusAccepted, u.ask().status, "a new day")
	require.EqualValues(t, 1, u.usage("questions").Used)

	u.limit("questions", "1")
	requireUsedUp(t, u.ask(), "questions")
	require.Equal(t, "the limit of questions for user asks is removed\n", u.one.quernd("limit", "unset", "--user", "asks", "questions"))
	require.Equal(t, http.StatusAccepted, u.ask().status, "the limit was removed")
	require.Nil(t, u.usage("questions").Limit)

	_, err := u.one.command("limit", "set", "questions", "3")
	require.ErrorContains(t, err, "at least one of the flags", "a forgotten flag must not limit everyone")
	_, err = u.one.command("limit", "set", "--user", "", "questions", "3")
	require.Error(t, err)
	_, err = u.one.command("limit", "set", "--user", "asks", "answers", "3")
	require.ErrorContains(t, err, "must be one of questions, tokens")
	_, err = u.one.command("limit", "set", "--user", "nobody-here", "questions", "3")
	require.ErrorContains(t, err, `There is no user "nobody-here"`)
}

func acceptedRun(t *testing.T, answer *answer) string {
	t.Helper()

	var run struct{ RunID string }

	answer.json(t, &run)
	require.NotEmpty(t, run.RunID, answer.body)

	return run.RunID
}

// quotaOfRace checks that requests at the same time on both replicas do not exceed the limit.
func quotaOfRace(t *testing.T, u *quotas) {
	t.Helper()

	const limit, requests = 10, 40

	u.limit("questions", strconv.Itoa(limit))

	var (
		asking   sync.WaitGroup
		statuses [requests]int
		body     = u.script("nl2ql", "How many rows?", "")
	)

	for i := range requests {
		request := newRequest(t, http.MethodPost, []*service{u.one, u.two}[i%2].url+"/query/ask", u.bearer, body, "Prefer: respond-async")

		asking.Go(func() {
			if answer, err := try(request); err == nil {
				statuses[i] = answer.status
			}
		})
	}

	asking.Wait()

	count := map[int]int{}
	for _, status := range statuses {
		count[status]++
	}

	require.Equal(t, map[int]int{http.StatusAccepted: limit, http.StatusTooManyRequests: requests - limit}, count)
	require.EqualValues(t, limit, u.usage("questions").Used)
}

// quotaOfTokens checks that tokens are counted when they are used, by failed questions too, and that no call of a model begins at the limit.
func quotaOfTokens(t *testing.T, u *quotas, m *model) {
	t.Helper()

	answered := u.concludes()
	require.Equal(t, "completed", answered.Status, "%+v", answered.Error)

	spent := u.usage("tokens").Used
	require.EqualValues(t, answered.Result.Usage.InputTokens+answered.Result.Usage.OutputTokens, spent)
	require.Positive(t, spent)

	u.limit("tokens", strconv.FormatInt(spent+1, 10))
	require.Equal(t, "completed", u.concludes().Status, "one token is left, so another call begins")

	over := u.usage("tokens")
	require.Greater(t, over.Used, *over.Limit)
	require.EqualValues(t, 0, *over.Left)
	require.LessOrEqual(t, over.Used-*over.Limit, spent, "the tokens of what was begun before the limit was reached")

	questions := u.usage("questions").Used
	requireUsedUp(t, u.ask(), "tokens")
	require.Equal(t, questions, u.usage("questions").Used, "a refused question is not counted")

	u.yesterday("tokens")
	u.limit("tokens", "1")

	failed := call(t, http.MethodPost, u.next().url+"/query/ask", u.bearer, u.script("nl2ql", "Answer with garbage.", ""), "Accept: application/json", "Prefer: wait=60")
	require.Equal(t, http.StatusOK, failed.status, failed.body)

	var run concluded

	failed.json(t, &run)
	require.Equal(t, "failed", run.Status)
	require.Equal(t, "RATE_LIMITED", run.Error.Code, "its second call was refused: %s", run.Error.Message)
	require.Contains(t, run.Error.Message, "resets at")

	heard := slices.DeleteFunc(m.requests(), func(body string) bool { return !strings.Contains(body, "Answer with garbage.") })
	require.Len(t, heard, 1)
	require.EqualValues(t, 110, u.usage("tokens").Used, "a failed question counts what it used")
	require.Equal(t, questions+1, u.usage("questions").Used)
}

// quotaOfGroup checks the precedence of limits. The groups have names of their own, because other users must not be affected.
func quotaOfGroup(t *testing.T, u *quotas) {
	t.Helper()

	set := func(of, name string, amount int) {
		u.one.quernd("limit", "set", of, name, "questions", strconv.Itoa(amount))
	}

	require.Equal(t, http.StatusAccepted, u.ask().status)
	set("--group", "quota-staff", 1)
	requireUsedUp(t, u.ask(), "questions")
	set("--group", "quota-analysts", 2)
	require.Equal(t, http.StatusAccepted, u.ask().status, "the highest limit of the groups applies")
	requireUsedUp(t, u.ask(), "questions")

	token := value(t, call(t, http.MethodPost, u.one.url+"/user/tokens", u.bearer, `{"name": "limited"}`))
	other := &quotas{filled: u.by(token), one: u.one, two: u.two, user: u.user}
	requireUsedUp(t, other.ask(), "questions")

	u.limit("questions", "3")
	require.Equal(t, http.StatusAccepted, other.ask().status, "a limit of the user takes precedence")
	requireUsedUp(t, u.ask(), "questions")
	u.limit("questions", "unlimited")
	require.Equal(t, http.StatusAccepted, u.ask().status)
	u.limit("questions", "0")
	requireUsedUp(t, u.ask(), "questions")

	listed := u.one.quernd("limit", "show")
	for _, line := range []string{"group quota-analysts +questions +2", "group quota-staff +questions +1", "user " + u.user + " +questions +0"} {
		require.Regexp(t, "(?m)^"+line+"$", listed)
	}

	u.one.quernd("limit", "unset", "--user", u.user, "questions")
	requireUsedUp(t, u.ask(), "questions")
	u.one.quernd("limit", "unset", "--group", "quota-analysts", "questions")
	u.one.quernd("limit", "unset", "--group", "quota-staff", "questions")
	require.Equal(t, http.StatusAccepted, u.ask().status)

	u.one.quernd("limit", "set", "--everyone", "tokens", "unlimited")
	require.Contains(t, u.one.quernd("limit", "show"), "everyone")
	u.one.quernd("limit", "unset", "--everyone", "tokens")
}

// prepare asks the replicas in turn for an upload of so many bytes.
func (u *quotas) prepare(bytes int64) *answer {
	u.t.Helper()

	return call(u.t, http.MethodPost, u.next().url+"/file-upload/prepare", u.bearer, prepareBody(bytes))
}

func requireNoRoom(t *testing.T, refused *answer) {
	t.Helper()
	require.Equal(t, http.StatusUnprocessableEntity, refused.status, refused.body)
	require.Contains(t, refused.body, `"LIMIT_EXCEEDED"`)
	require.Contains(t, refused.body, `"limit.storedBytes"`)
	require.Contains(t, refused.body, "Delete datasets")
}

// quotaOfStore checks that uploads in progress, loaded files and rows count, and that deleting makes room at once.
func quotaOfStore(t *testing.T, u *quotas) {
	t.Helper()

	rows := u.usage("storedBytes")
	require.Positive(t, rows.Used, "the data files of the rows")
	require.Nil(t, rows.ResetsAt)

	u.limit("storedBytes", strconv.FormatInt(rows.Used+100, 10))

	var session struct{ SessionID string }

	accepted := u.prepare(100)
	require.Equal(t, http.StatusOK, accepted.status, "exactly the limit: %s", accepted.body)
	accepted.json(t, &session)
	require.EqualValues(t, 0, *u.usage("storedBytes").Left)
	requireNoRoom(t, u.prepare(1))
	requireNoRoom(t, u.post(`{"data": [{"n": 3}]}`))

	aborted := call(t, http.MethodPost, u.one.url+"/file-upload/"+session.SessionID+"/abort", u.bearer, "")
	require.Less(t, aborted.status, http.StatusMultipleChoices, aborted.body)

	const requests = 24 // of 10 bytes each, of which 10 fit

	var (
		asking   sync.WaitGroup
		statuses [requests]int
	)

	for i := range requests {
		request := newRequest(t, http.MethodPost, []*service{u.one, u.two}[i%2].url+"/file-upload/prepare", u.bearer, prepareBody(10))

		asking.Go(func() {
			if answer, err := try(request); err == nil {
				statuses[i] = answer.status
			}
		})
	}

	asking.Wait()

	count := map[int]int{}
	for _, status := range statuses {
		count[status]++
	}

	require.Equal(t, map[int]int{http.StatusOK: 10, http.StatusUnprocessableEntity: requests - 10}, count)

	content := "n\n" + strings.Repeat("1\n", 200)
	u.limit("storedBytes", strconv.FormatInt(u.usage("storedBytes").Used+int64(len(content)), 10))
	u.loaded("", content) // what was uploaded can be loaded, though its rows exceed the limit
	require.Greater(t, u.usage("storedBytes").Used, *u.usage("storedBytes").Limit)
	requireNoRoom(t, u.prepare(1))

	full := u.usage("storedBytes").Used

	removed := u.call(http.MethodPost, "/rows/delete", `{"condition": "n = 1"}`)
	require.Equal(t, http.StatusOK, removed.status, "rows can be deleted above the limit: %s", removed.body)
	requireNoRoom(t, u.post(`{"data": [{"n": 3}]}`))
	require.Equal(t, http.StatusNoContent, u.call(http.MethodDelete, "", "").status)
	require.LessOrEqual(t, u.usage("storedBytes").Used, full-rows.Used-int64(len(content)), "rows and the loaded file")
	require.Equal(t, http.StatusOK, u.prepare(1).status, "deleting makes room at once")
}

// quotaOfStatements checks that statements count their time and the bytes of their data files, and that questions need both.
func quotaOfStatements(t *testing.T, u *quotas) {
	t.Helper()

	run := func(statement string) *answer {
		return call(t, http.MethodPost, u.next().url+"/query", u.bearer, fmt.Sprintf(`{"username": %q, "namespace": %q, "query": %q}`, u.owner, u.namespace, statement))
	}
	counted := func(kind string, least int64) (used int64) {
		await(t, "the usage is written", func() bool {
			used = u.usage(kind).Used

			return used >= least
		})

		return used
	}

	require.Equal(t, http.StatusOK, run("SELECT sum(n) FROM orders").status)

	file := counted("scannedBytes", 1)
	require.Equal(t, u.usage("storedBytes").Used, file, "the data file was read once")

	u.limit("scannedBytes", strconv.FormatInt(file+1, 10))
	require.Equal(t, http.StatusOK, run("SELECT sum(n) FROM orders").status, "one byte is left")
	require.Equal(t, 2*file, counted("scannedBytes", 2*file))
	requireUsedUp(t, run("SELECT 1"), "scannedBytes")
	requireUsedUp(t, u.ask(), "scannedBytes")
	requireUsedUp(t, call(t, http.MethodGet, u.url()+"/rows", u.bearer, ""), "scannedBytes")
	u.yesterday("scannedBytes")
	require.Equal(t, http.StatusOK, run("SELECT 1").status, "a new day")

	// This reads no file, but takes time.
	await(t, "statements ran for a second", func() bool {
		require.Equal(t, http.StatusOK, run("SELECT max(hash(i)) FROM range(400000000) t(i)").status)

		return u.usage("querySeconds").Used >= 1
	})
	u.limit("querySeconds", "1")
	requireUsedUp(t, run("SELECT 1"), "querySeconds")
	requireUsedUp(t, call(t, http.MethodPost, u.two.url+"/query", u.bearer,
		fmt.Sprintf(`{"username": %q, "namespace": %q, "query": "SELECT 1"}`, u.owner, u.namespace), "Prefer: respond-async"), "querySeconds")
	requireUsedUp(t, u.ask(), "querySeconds")
	u.yesterday("querySeconds")

	answered := u.concludes()
	require.Equal(t, "completed", answered.Status, "%+v", answered.Error)
	require.Positive(t, counted("scannedBytes", 1), "the statement of a question counts")

	quotaExport(t, u)
}

// quotaExport checks the usage of all users as CSV.
func quotaExport(t *testing.T, u *quotas) {
	t.Helper()

	today := time.Now().UTC()
	printed := u.one.quernd("usage", "export", "--from", today.AddDate(0, 0, -1).Format(time.DateOnly), "--to", today.Format(time.DateOnly))
	require.True(t, strings.HasPrefix(printed, "day,username,account,kind,amount\n"), printed)

	for _, of := range []struct {
		day           time.Time
		kind, matches string
	}{
		{today.AddDate(0, 0, -1), "scannedBytes", `\d+`},
		{today.AddDate(0, 0, -1), "querySeconds", `[1-9]\d*\.\d{3}`},
		{today, "scannedBytes", `\d+`},
		{today, "questions", `1`},
	} {
		require.Regexp(t, `(?m)^`+of.day.Format(time.DateOnly)+`,selects,[0-9a-f-]{36},`+of.kind+`,`+of.matches+`$`, printed)
	}

	only := u.one.quernd("usage", "export", "--from", today.Format(time.DateOnly), "--to", today.Format(time.DateOnly))
	require.NotContains(t, only, today.AddDate(0, 0, -1).Format(time.DateOnly))

	_, err := u.one.command("usage", "export", "--from", "yesterday", "--to", today.Format(time.DateOnly))
	require.ErrorContains(t, err, "must be a day such as 2026-11-30")
	_, err = u.one.command("usage", "export", "--from", today.Format(time.DateOnly), "--to", today.AddDate(0, 0, -1).Format(time.DateOnly))
	require.ErrorContains(t, err, "must not be before --from")
}
