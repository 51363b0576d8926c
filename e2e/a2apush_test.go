package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// pushed is a push notification that a receiver got.
type pushed struct {
	task, state string
	header      http.Header
}

// pushReceiver is a server to which push notifications are sent.
type pushReceiver struct {
	*httptest.Server

	mu   sync.Mutex
	got  []pushed
	fail int // so many requests are refused
}

func newPushReceiver(t *testing.T, fail int) *pushReceiver {
	t.Helper()

	r := &pushReceiver{fail: fail}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var update a2aEvent

		body, err := io.ReadAll(request.Body)
		if err != nil {
			return
		}

		if json.Unmarshal(body, &update) != nil || update.StatusUpdate == nil {
			t.Errorf("not a status update: %s", body)

			return
		}

		r.mu.Lock()
		defer r.mu.Unlock()

		if r.fail--; r.fail >= 0 {
			w.WriteHeader(http.StatusServiceUnavailable)

			return
		}

		r.got = append(r.got, pushed{update.StatusUpdate.TaskID, strings.TrimPrefix(update.StatusUpdate.Status.State, "TASK_STATE_"), request.Header})
	}))
	t.Cleanup(r.Close)

	return r
}

// states returns the states of a task that arrived, each once.
func (r *pushReceiver) states(task string) (list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()

	for _, one := range r.got {
		if one.task == task {
			list = append(list, one.state)
		}
	}

	return slices.Compact(list)
}

func (r *pushReceiver) awaits(t *testing.T, task string, states ...string) {
	t.Helper()
	await(t, fmt.Sprintf("%v arrived, not %v", states, r.states(task)), func() bool { return slices.Equal(states, r.states(task)) })
}

// config returns the configuration of a message that is answered at once and notifies the receiver.
func (r *pushReceiver) config() string {
	return fmt.Sprintf(`"configuration": {"returnImmediately": true, "taskPushNotificationConfig":
		{"url": %q, "token": "t-1", "authentication": {"scheme": "Bearer", "credentials": "cr3dentials"}}}`, r.URL)
}

// sends asks a question and returns the id of its task.
func (p *peer) sends(params string) string {
	p.t.Helper()

	answer := p.call("SendMessage", params)
	result := rpcResult(p.t, answer)
	require.NotNil(p.t, result.Task, answer.body)

	return result.Task.ID
}

// TestPushNotifications sends the states of tasks to receivers.
func TestPushNotifications(t *testing.T) {
	t.Parallel()

	settings := []string{
		scripted, "QUERN_SECRET=" + strings.Repeat("pushpush", 8), "QUERN_WEBHOOK_ALLOWED_NETWORKS=127.0.0.0/8", "QUERN_WEBHOOK_TIMEOUT=1s", "QUERN_WEBHOOK_RETRY_INTERVAL=20ms",
		"QUERN_RUN_MAX_PER_USER=100",
	}
	one := start(t, settings...)
	two := another(t, one, settings...)
	key := one.newKey()

	for name, test := range map[string]func(t *testing.T, one, two *service, key *signer){
		"states": pushStates, "life": pushLife, "rights": pushRights, "refused": pushRefused, "many": pushMany,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, one, two, key)
		})
	}
}

// pushStates follows a task that asks back, with a receiver that is down at first.
func pushStates(t *testing.T, one, _ *service, key *signer) {
	t.Helper()

	p, r := newPeer(newDoubtful(t, one, "petra", key.token("petra")), "assistant"), newPushReceiver(t, 3)

	message := p.ask(uuid.NewString(), whichYear, r.config())
	task := p.sends(message)
	require.Equal(t, task, p.sends(message), "a repeated message is the same task")
	require.Equal(t, 1, strings.Count(p.call("ListTaskPushNotificationConfigs", `{"taskId": "`+task+`"}`).body, `"url"`), "and has one config")
	r.awaits(t, task, "INPUT_REQUIRED")
	rpcResult(t, p.call("SendMessage", p.reply(uuid.NewString(), task, "2")))
	r.awaits(t, task, "INPUT_REQUIRED", "COMPLETED")

	header := r.got[0].header
	require.Equal(t, []string{"t-1", "Bearer cr3dentials", "application/a2a+json"},
		[]string{header.Get("A2A-Notification-Token"), header.Get("Authorization"), header.Get("Content-Type")})
	require.Empty(t, one.holding("cr3dentials"), "credentials are stored as they are")
	require.NotContains(t, one.log(), "cr3dentials")
}

// pushLife creates, reads, replaces and deletes push notifications.
func pushLife(t *testing.T, one, _ *service, key *signer) {
	t.Helper()

	d := newFilled(t, one, "quinn", key.token("quinn"))
	postRows(t, one, d.bearer, d.path(), `{"data": [{"region": "north"}]}`)

	p, first, r := newPeer(d, "nl2ql"), newPushReceiver(t, 0), newPushReceiver(t, 0)
	task := p.begin(waiting).ID
	config := func(id, url string) string {
		return fmt.Sprintf(`{"taskId": %q, "id": %q, "url": %q, "authentication": {"scheme": "Bearer", "credentials": "cr3dentials"}}`, task, id, url)
	}
	shown := func(answer *answer) string { return string(field(t, answer.body, "result")) }

	require.JSONEq(t, fmt.Sprintf(`{"taskId": %q, "id": "a", "url": %q, "authentication": {"scheme": "Bearer"}}`, task, first.URL), shown(p.call("CreateTaskPushNotificationConfig", config("a", first.URL))))
	p.call("CreateTaskPushNotificationConfig", config("a", r.URL))
	require.Contains(t, shown(p.call("GetTaskPushNotificationConfig", config("a", ""))), r.URL)
	p.call("CreateTaskPushNotificationConfig", config("b", first.URL))
	require.Equal(t, 2, strings.Count(shown(p.call("ListTaskPushNotificationConfigs", config("", ""))), `"url"`))
	require.JSONEq(t, `{}`, shown(p.call("DeleteTaskPushNotificationConfig", config("b", ""))))

	code, message := rpcError(t, p.call("DeleteTaskPushNotificationConfig", config("b", "")))
	require.Equal(t, -32001, code)
	require.Contains(t, message, "no push notification config with this id")

	for i := range 9 {
		rpcResult(t, p.call("CreateTaskPushNotificationConfig", config(strconv.Itoa(i), r.URL)))
	}

	code, message = rpcError(t, p.call("CreateTaskPushNotificationConfig", config("one more", r.URL)))
	require.Equal(t, -32602, code)
	require.Contains(t, message, "10 push notification configs")

	p.task("CancelTask", task)
	r.awaits(t, task, "CANCELED")

	// A task that has ended is sent at once.
	p.call("CreateTaskPushNotificationConfig", config("3", first.URL))
	first.awaits(t, task, "CANCELED")

	var list struct{ Data []webhook }

	call(t, http.MethodGet, one.url+"/webhooks", d.bearer, "").json(t, &list)
	require.Empty(t, list.Data, "push notifications are no webhooks")

	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, one.url+"/query/runs/"+task, d.bearer, "").status)
	require.Subset(t, []string{"audit", "idempotency", "river_job"}, one.holding(task))
}

// pushRights checks that nothing is sent after the credential of the maker is gone, and that the body is what the maker may see.
func pushRights(t *testing.T, one, _ *service, key *signer) {
	t.Helper()

	d := newFilled(t, one, "rosa", key.token("rosa"))
	postRows(t, one, d.bearer, d.path(), `{"data": [{"region": "north"}]}`)

	var token struct{ ID, Token string }

	call(t, http.MethodPost, one.url+"/user/tokens", d.bearer, `{"name": "agent", "role": "viewer"}`).json(t, &token)

	p, r := newPeer(d.by(token.Token), "nl2ql"), newPushReceiver(t, 0)
	task := p.sends(p.ask(uuid.NewString(), waiting, r.config()))

	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, one.url+"/user/tokens/"+token.ID, d.bearer, "").status)
	await(t, "the push notifications are gone", func() bool { return one.count(`SELECT count(*) FROM webhooks WHERE run_id = '`+task+`'`) == 0 })
	require.Empty(t, r.states(task))
}

// pushRefused names receivers that are never reached. Nothing is started for a message with one.
func pushRefused(t *testing.T, one, _ *service, key *signer) {
	t.Helper()

	d := newFilled(t, one, "sven", key.token("sven"))
	p := newPeer(d, "nl2ql")

	for config, says := range map[string]string{
		`"url": "ftp://example.org"`:             "url",
		`"url": ""`:                              "url",
		`"url": "https://169.254.169.254/x"`:     "url",
		`"url": "https://[::ffff:10.0.0.1]/x"`:   "url",
		`"url": "https://u:p@example.org"`:       "url",
		`"url": "https://x.org", "token": "a\n"`: "token",
		`"url": "https://x.org", "id": "é"`:      "id",
		`"url": "https://x.org", "authentication": {"scheme": "", "credentials": "x"}`:           "authentication.scheme",
		`"url": "https://x.org", "authentication": {"scheme": "Bearer x", "credentials": "x"}`:   "authentication.scheme",
		`"url": "https://x.org", "authentication": {"scheme": "Bearer", "credentials": "x\r\n"}`: "authentication.credentials",
	} {
		code, message := rpcError(t, p.call("SendMessage", p.ask(uuid.NewString(), oneStep, `"configuration": {"taskPushNotificationConfig": {`+config+`}}`)))
		require.Equal(t, -32602, code, config)
		require.Contains(t, message, "configuration.taskPushNotificationConfig."+says+" ", config)
	}

	require.Zero(t, one.count(`SELECT count(*) FROM runs r JOIN accounts a ON a.id = r.account_id WHERE a.username = 'sven'`))
}

// pushMany asks many questions whose push notifications are made while they end. Each must arrive.
func pushMany(t *testing.T, one, two *service, key *signer) {
	t.Helper()

	d := newFilled(t, one, "tove", key.token("tove"))
	postRows(t, one, d.bearer, d.path(), `{"data": [{"region": "north"}]}`)

	r, tasks := newPushReceiver(t, 10), []string{}

	for i := range 40 {
		p := newPeer(d, "nl2ql")
		if i%2 == 0 {
			p.filled = &filled{t, two, d.bearer, d.owner, d.namespace, d.name}
		}

		task := p.begin(oneStep).ID
		rpcResult(t, p.call("CreateTaskPushNotificationConfig", fmt.Sprintf(`{"taskId": %q, "url": %q}`, task, r.URL)))
		tasks = append(tasks, task)
	}

	for _, task := range tasks {
		r.awaits(t, task, "COMPLETED")
	}
}
