//go:build soak

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// countOwn counts the user's rows. The number never becomes smaller, and all acknowledged rows are there once.
func (u *soakUser) countOwn() {
	var found queried
	if !u.must(http.MethodPost, "/query", u.statement(u.index, "SELECT count(*) AS n, count(DISTINCT id) AS d FROM orders"), &found) {
		return
	}

	n, _ := found.Data[0]["n"].(float64)
	d, _ := found.Data[0]["d"].(float64)

	if n != d || int(n) < len(u.acknowledged) || int(n) > len(u.acknowledged)+len(u.unknown) || int(n) < u.most {
		u.k.t.Errorf("%s counts %v rows, of which %v are different; %d were acknowledged, %d were sent without an answer, %d were counted before",
			u.name, n, d, len(u.acknowledged), len(u.unknown), u.most)
	}

	u.most = int(n)
}

func (u *soakUser) statement(owner int, text string) string {
	return fmt.Sprintf(`{"username": %q, "namespace": %q, "query": %q}`, nameOf(owner), soakNamespace, text)
}

// other returns a user whose data this user may read at times, or never.
func (u *soakUser) other() int { return (u.index + soakUsers - 1 - u.random.IntN(3)) % soakUsers }

// anyone returns the user or another one.
func (u *soakUser) anyone() int {
	if u.random.IntN(2) == 0 {
		return u.index
	}

	return u.other()
}

// readOther reads the rows of another user. A user who may read them during the whole request must get them.
func (u *soakUser) readOther() {
	owner, began := u.other(), time.Now()
	name := "orders"

	if u.random.IntN(6) == 0 {
		name = "ledger" // nobody else may ever read it
	}

	got := u.until(http.MethodPost, "/query", u.statement(owner, `SELECT "mark", count(*) AS n FROM `+name+` GROUP BY "mark"`))
	if got == nil {
		return
	}

	_, all := u.grantFrom(owner).during(began, time.Now())

	switch {
	case got.status == http.StatusOK && name == "orders" && strings.Contains(got.body, "mark-"): // once has judged the rows
	case name == "orders" && all, got.status != http.StatusNotFound && got.status != http.StatusUnprocessableEntity:
		u.k.t.Errorf("%s reads %s of user %d: %d %s", u.name, name, owner, got.status, got.body)
	}
}

// list lists the datasets that the user may see: the own ones and those that are shared.
func (u *soakUser) list() {
	var page struct {
		Data []struct{ Username, Name string }
	}

	began := time.Now()
	if !u.must(http.MethodGet, "/schema/datasets/all?limit=100", "", &page) {
		return
	}

	seen := map[string]bool{}
	for _, one := range page.Data {
		seen[one.Username+"/"+one.Name] = true
	}

	for _, owner := range append([]*soakUser{u.k.prober}, u.k.people...) {
		some, all := u.grantFrom(owner.index).during(began, time.Now())
		if owner == u {
			some, all = true, true
		}

		orders, ledger := seen[owner.name+"/orders"], seen[owner.name+"/ledger"]
		if orders && !some || !orders && all || ledger != (owner == u) {
			u.k.t.Errorf("%s sees the orders and the ledger of %s: %t %t; may always see the orders: %t, at times: %t", u.name, owner.name, orders, ledger, all, some)
		}
	}
}

// share grants access to another user, or revokes it.
func (u *soakUser) share() {
	reader := (u.index + 1 + u.random.IntN(2)) % soakUsers
	grant := u.grants[reader]
	_, is := grant.during(time.Now(), time.Now())

	grant.set(unsure)

	path := "/permissions/datasets/self/" + soakNamespace + "/orders/shares"
	if !is {
		if u.must(http.MethodPost, path, shareBody(nameOf(reader), "viewer"), nil) {
			grant.set(granted)
		}

		return
	}

	got := u.until(http.MethodDelete, path, fmt.Sprintf(`{"username": %q}`, nameOf(reader)))

	switch {
	case got == nil:
	case got.status == http.StatusOK, got.status == http.StatusNotFound: // of an answer that was lost
		grant.set(denied)
	default:
		u.k.t.Errorf("%s ends a share: %d %s", u.name, got.status, got.body)
	}
}

func (u *soakUser) asks(owner int) string {
	agent := []string{"nl2ql", "assistant"}[u.random.IntN(2)]

	return fmt.Sprintf(`{"username": %q, "namespace": %q, "agent": %q, "query": %q}`, nameOf(owner), soakNamespace, agent, orderAsked)
}

// question asks, and waits for the answer by polling.
func (u *soakUser) question() {
	owner, began, before := u.anyone(), time.Now(), len(u.acknowledged)

	got := u.until(http.MethodPost, "/query/ask", u.asks(owner), "Idempotency-Key: "+uuid.NewString(), "Accept: application/json", "Prefer: wait=20")
	if got == nil || u.refused("a question", owner, began, got) {
		return
	}

	u.k.asked()

	for deadline := time.Now().Add(2 * soakPatience); time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) {
		var run concluded
		if err := json.Unmarshal([]byte(got.body), &run); err != nil {
			u.k.t.Errorf("%s: %v: %s", u.name, err, got.body)

			return
		}

		if run.Status != "queued" && run.Status != "running" {
			u.concluded(owner, before, run)

			return
		}

		if got = u.until(http.MethodGet, "/query/runs/"+run.RunID, ""); got == nil || got.status != http.StatusOK {
			u.k.t.Errorf("%s loses a run: %+v", u.name, got)

			return
		}
	}

	u.k.t.Errorf("%s: a question gets no answer", u.name)
}

// concluded checks the end of a run.
func (u *soakUser) concluded(owner, before int, run concluded) {
	u.k.times.count("run " + run.Status + " " + run.Result.Outcome + run.Error.Code)

	if owner != u.index {
		return
	}

	if run.Status == "failed" && !slices.Contains([]string{"UNAVAILABLE", "TIMEOUT"}, run.Error.Code) {
		u.k.t.Errorf("%s: a run failed: %+v", u.name, run.Error)
	}

	if run.Status != "completed" || len(run.Result.Steps) == 0 {
		return
	}

	all := 0.0
	for _, row := range run.Result.Steps[0].Data {
		n, _ := row["n"].(float64)
		all += n
	}

	if run.Result.Model != "planner" && (int(all) < before || int(all) > len(u.acknowledged)+len(u.unknown)) {
		u.k.t.Errorf("%s: a run counts %v rows; %d were acknowledged before, %d now", u.name, all, before, len(u.acknowledged))
	}
}

// refused reports whether a question was refused because the user may not read the data.
func (u *soakUser) refused(what string, owner int, began time.Time, got *answer) bool {
	if got.status < http.StatusBadRequest {
		return false
	}

	_, all := u.grantFrom(owner).during(began, time.Now())
	if owner == u.index || all || got.status != http.StatusNotFound {
		u.k.t.Errorf("%s: %s about user %d: %d %s", u.name, what, owner, got.status, got.body)
	}

	return true
}

func (k *soak) asked() {
	k.mutex.Lock()
	defer k.mutex.Unlock()

	k.accepted++
}

// stream asks, and follows the events over all connections that are lost.
func (u *soakUser) stream() {
	owner, began := u.anyone(), time.Now()
	one, body, key := &followed{}, u.asks(owner), "Idempotency-Key: "+uuid.NewString()

	for deadline := time.Now().Add(2 * soakPatience); !one.ended(); time.Sleep(rand.N(500 * time.Millisecond)) {
		if time.Now().After(deadline) {
			u.k.t.Errorf("%s: the stream of %s does not end", u.name, one.run.RunID)

			return
		}

		request := newRequest(u.k.t, http.MethodPost, u.k.front+"/query/ask", u.bearer(), body, key, "Accept: text/event-stream")
		if one.run.RunID != "" {
			request = newRequest(u.k.t, http.MethodGet, u.k.front+"/query/runs/"+one.run.RunID+"/events", u.bearer(), "", "Last-Event-ID: "+strconv.Itoa(one.last().id))
		}

		if refused := u.read(request, one); refused != nil && u.refused("a stream", owner, began, refused) {
			return
		}
	}

	u.requireInOrder(one, owner, began)
}

// requireInOrder checks that a stream has every event once. Events with data are left out for a reader who has lost the right to see them.
func (u *soakUser) requireInOrder(one *followed, owner int, began time.Time) {
	isWithheld := strings.Contains(one.last().data, `"outcome":"withheld"`)
	if _, all := u.grantFrom(owner).during(began, time.Now()); isWithheld && (owner == u.index || all) {
		u.k.t.Errorf("%s: the answer of %s is withheld", u.name, one.run.RunID)
	}

	before := 0

	for i, e := range one.events {
		if e.id <= before || !isWithheld && e.id != before+1 {
			u.k.t.Errorf("%s: the event %d of %s has the id %d", u.name, i+1, one.run.RunID, e.id)
		}

		before = e.id
	}
}

// last returns the last event, or none.
func (f *followed) last() event {
	if len(f.events) == 0 {
		return event{}
	}

	return f.events[len(f.events)-1]
}

// read reads events until the connection is lost. It returns an answer that is not a stream.
func (u *soakUser) read(request *http.Request, one *followed) (refused *answer) {
	ctx, cancel := context.WithTimeout(request.Context(), 2*patience)
	defer cancel()

	began := time.Now()

	response, err := http.DefaultTransport.RoundTrip(request.WithContext(ctx))
	if err != nil {
		u.k.times.answered(nil)

		return nil
	}
	defer func() { _ = response.Body.Close() }()

	got := &answer{status: response.StatusCode, header: response.Header}
	u.k.times.answered(got)

	if response.StatusCode != http.StatusOK {
		if !again(got) {
			return got
		}

		return nil
	}

	for _, e := range readEvents(response.Body, 1000) {
		u.judge("a stream", began, time.Now(), e.data)

		one.events = append(one.events, e)
	}

	if one.run.RunID == "" && len(one.events) > 0 {
		if json.Unmarshal([]byte(one.events[0].data), &one.run) == nil && one.run.RunID != "" {
			u.k.asked()
		}
	}

	if !one.ended() {
		u.k.mutex.Lock()
		defer u.k.mutex.Unlock()

		u.k.cuts++
	}

	return nil
}

// message asks as another agent does, by A2A.
func (u *soakUser) message() {
	owner, began := u.anyone(), time.Now()
	body := fmt.Sprintf(`{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": {"messageId": %q, "role": "ROLE_USER", "parts": [{"text": %q}],
		"metadata": {"namespace": "%s/%s"}}}}`, uuid.NewString(), orderAsked, nameOf(owner), soakNamespace)

	if got := u.rpc("/a2a/nl2ql", body); got != nil && !u.refusedRPC("a message", owner, began, got) {
		u.k.asked()
	}
}

// tool runs a statement as a language model does, by MCP.
func (u *soakUser) tool() {
	owner, began := u.anyone(), time.Now()
	arguments := fmt.Sprintf(`{"sql": %q}`, fmt.Sprintf(`SELECT "mark", count(*) AS n FROM "%s/%s/orders" GROUP BY "mark"`, nameOf(owner), soakNamespace))
	body := fmt.Sprintf(`{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "query", "arguments": %s}}`, arguments)

	if got := u.rpc("/mcp", body); got != nil {
		u.refusedRPC("a tool", owner, began, got)
	}
}

// rpc repeats a call while its answer says to repeat it.
func (u *soakUser) rpc(path, body string) *answer {
	for deadline := time.Now().Add(soakPatience); time.Now().Before(deadline); time.Sleep(rand.N(time.Second)) {
		got := u.until(http.MethodPost, path, body, "Mcp-Protocol-Version: 2025-11-25", "Accept: application/json, text/event-stream")
		if got == nil || !retriable(u.failure(got)) {
			return got
		}

		u.k.times.count("JSON-RPC error to repeat")
	}

	u.k.t.Errorf("%s: no answer for %v: %s", u.name, soakPatience, path)

	return nil
}

// failure returns the error message of a call, or an empty text if it succeeded. A failed task is an answer and no error.
func (u *soakUser) failure(got *answer) string {
	if got.status != http.StatusOK {
		return got.body
	}

	for _, text := range messages(u.k.t, got) {
		var message struct {
			Error  json.RawMessage
			Result struct{ IsError bool }
		}

		if err := json.Unmarshal(text, &message); err != nil || message.Error != nil || message.Result.IsError {
			return string(text)
		}
	}

	return ""
}

// retriable reports whether the message of a call that failed says that the call should be repeated.
func retriable(failure string) bool {
	return slices.ContainsFunc([]string{"UNAVAILABLE", "RATE_LIMITED", "TIMEOUT", "IN_PROGRESS"}, func(code string) bool {
		return strings.Contains(failure, `"reason":"`+code) || strings.Contains(failure, `"text":"`+code) || strings.Contains(failure, `"message":"`+code)
	})
}

// refusedRPC reports whether a call was refused because the user may not read the data.
func (u *soakUser) refusedRPC(what string, owner int, began time.Time, got *answer) bool {
	failure := u.failure(got)
	if failure == "" {
		return false
	}

	_, all := u.grantFrom(owner).during(began, time.Now())
	if owner == u.index || all {
		u.k.t.Errorf("%s: %s about user %d: %d %s", u.name, what, owner, got.status, failure)
	}

	return true
}

// probe does one operation of each kind, so that every part is used, and returns those that failed. It repeats none.
func (u *soakUser) probe() (failure string) {
	for name, one := range u.k.services() {
		if !isReady(u.k.t.Context(), one) {
			return name + " is not ready"
		}
	}

	do := func(method, path, body string, into any) bool {
		got := u.once(method, path, body, "Accept: application/json", "Prefer: wait=8")

		return got != nil && got.status < http.StatusBadRequest && (into == nil || json.Unmarshal([]byte(got.body), into) == nil)
	}

	posted, rows := u.fresh()
	loaded, _ := u.fresh()

	for _, id := range slices.Concat(posted, loaded) {
		u.unknown[id] = true
	}

	if !do(http.MethodPost, u.path("orders")+"/rows", `{"data": [`+strings.Join(rows, ", ")+`]}`, nil) {
		return "rows are not stored"
	}

	if !do(http.MethodPost, "/query", u.statement(u.index, orderCount), nil) {
		return "a statement fails"
	}

	var run concluded
	if !do(http.MethodPost, "/query/ask", u.asks(u.index), &run) || run.Status != "completed" || run.Result.Model == "planner" {
		return fmt.Sprintf("a question is not answered: %s %s", run.Status, run.Error.Message)
	}

	now, done := u.upload(loaded, do)
	for deadline := time.Now().Add(u.wait); done && now.Status != "completed" && time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		done = do(http.MethodGet, u.path("orders")+"/ingestions/"+now.ID, "", &now)
	}

	if !done || now.Status != "completed" {
		return "a file is not loaded: " + now.Status
	}

	return ""
}
