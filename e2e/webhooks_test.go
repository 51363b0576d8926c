package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"
)

// webhook is a webhook as the API returns it.
type webhook struct {
	ID, URL, Status, Reason, Secret, Username, Namespace, DatasetName string
	Types                                                             []string
}

type delivery struct {
	EventID, Type, Status, Problem string
	Attempts, ResponseStatus       int
}

// webhooks are the webhooks of a user.
type webhooks struct {
	t      *testing.T
	s      *service
	bearer string
}

func (h webhooks) create(body string) (made webhook) {
	h.t.Helper()

	answer := call(h.t, http.MethodPost, h.s.url+"/webhooks", h.bearer, body)
	require.Equal(h.t, http.StatusCreated, answer.status, answer.body)
	answer.json(h.t, &made)

	return made
}

func (h webhooks) get(id string) (found webhook) {
	h.t.Helper()
	call(h.t, http.MethodGet, h.s.url+"/webhooks/"+id, h.bearer, "").json(h.t, &found)

	return found
}

func (h webhooks) deliveries(id string) []delivery {
	h.t.Helper()

	var page struct{ Data []delivery }

	answer := call(h.t, http.MethodGet, h.s.url+"/webhooks/"+id+"/deliveries?limit=100", h.bearer, "")
	require.Equal(h.t, http.StatusOK, answer.status, answer.body)
	answer.json(h.t, &page)

	return page.Data
}

// test sends a test event and waits until it was tried.
func (h webhooks) test(id string) (last delivery) {
	h.t.Helper()

	var sent struct{ EventID string }

	answer := call(h.t, http.MethodPost, h.s.url+"/webhooks/"+id+"/test", h.bearer, "")
	require.Equal(h.t, http.StatusOK, answer.status, answer.body)
	answer.json(h.t, &sent)
	await(h.t, "the test was tried", func() bool {
		for _, one := range h.deliveries(id) {
			if one.EventID == sent.EventID && one.Attempts > 0 {
				last = one
			}
		}

		return last.Attempts > 0
	})

	return last
}

// received is a request that a receiver got.
type received struct {
	notice

	accepted bool // the receiver answered 2xx
}

// receiver is a server to which webhooks are sent.
type receiver struct {
	*httptest.Server

	t       *testing.T
	mu      sync.Mutex
	secrets []string
	got     []received
	answer  func(w http.ResponseWriter, r *http.Request, one notice) (accepted bool)
}

// newReceiver starts a receiver on loopback. answer writes the response, and reports whether it accepts.
func newReceiver(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, one notice) bool) *receiver {
	t.Helper()

	r := &receiver{t: t, answer: answer}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)

	return r
}

func accepting(w http.ResponseWriter, _ *http.Request, _ notice) bool {
	w.WriteHeader(http.StatusNoContent)

	return true
}

// ServeHTTP checks the signature with a library that others wrote.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return
	}

	r.mu.Lock()
	secrets := slices.Clone(r.secrets)
	r.mu.Unlock()

	for _, secret := range secrets {
		checks, err := standardwebhooks.NewWebhook(secret)
		if err == nil {
			err = checks.Verify(body, request.Header)
		}

		if err != nil {
			r.t.Errorf("the signature: %v", err)
		}

		if checks.Verify(append(body, ' '), request.Header) == nil {
			r.t.Error("the signature does not depend on the body")
		}
	}

	var one notice
	if json.Unmarshal(body, &one) != nil || one.ID != request.Header.Get("webhook-id") || request.Method != http.MethodPost {
		r.t.Errorf("%s with the id %s: %s", request.Method, request.Header.Get("webhook-id"), body)
	}

	// In the order of arrival: the next request may come before the answer to this one has ended.
	r.mu.Lock()
	at := len(r.got)
	r.got = append(r.got, received{notice: one})
	r.mu.Unlock()

	accepted := r.answer(w, request, one)

	r.mu.Lock()
	defer r.mu.Unlock()

	r.got[at].accepted = accepted
}

// events returns the first request for each event. A service that is killed after the receiver has accepted an event sends it again.
func (r *receiver) events() (first []received) {
	for _, one := range r.requests() {
		if !slices.ContainsFunc(first, func(other received) bool { return other.ID == one.ID }) {
			first = append(first, one)
		}
	}

	return first
}

func (r *receiver) knows(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.secrets = secrets
}

func (r *receiver) requests() []received {
	r.mu.Lock()
	defer r.mu.Unlock()

	return slices.Clone(r.got)
}

// TestWebhooks sends events to receivers that behave in every way.
func TestWebhooks(t *testing.T) {
	t.Parallel()

	settings := []string{
		scripted, "QUERN_SECRET=" + strings.Repeat("webhooks", 8), "QUERN_WEBHOOK_ALLOWED_NETWORKS=127.0.0.0/8", "QUERN_WEBHOOK_TIMEOUT=1s", "QUERN_WEBHOOK_RETRY_INTERVAL=20ms",
	}
	one := start(t, settings...)
	two := another(t, one, settings...)
	key := one.newKey()

	for name, test := range map[string]func(t *testing.T, one, two *service, key *signer){
		"life": webhookLife, "rights": webhookRights, "hostile receivers": webhookHostile, "refused": webhookRefused,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, one, two, key)
		})
	}
}

// webhookLife creates, tests, limits, rotates, pauses and deletes a webhook.
func webhookLife(t *testing.T, one, _ *service, key *signer) {
	t.Helper()

	d := newFilled(t, one, "wanda", key.token("wanda"))
	d.beside("other", `{"data": [{"n": 1}]}`)

	h, r := webhooks{t, one, d.bearer}, newReceiver(t, accepting)
	made := h.create(fmt.Sprintf(`{"url": %q, "types": ["dataset.loaded"], "username": "self", "namespace": %q, "datasetName": "orders"}`, r.URL, d.namespace))
	r.knows(made.Secret)
	require.Equal(t, "wanda/"+d.namespace+"/orders", made.Username+"/"+made.Namespace+"/"+made.DatasetName)
	require.Empty(t, h.get(made.ID).Secret, "the secret is shown once")
	require.Empty(t, one.holding(strings.TrimPrefix(made.Secret, "whsec_")), "the secret is stored")

	require.Equal(t, "delivered", h.test(made.ID).Status)
	postRows(t, one, d.bearer, "wanda/"+d.namespace+"/other", `{"data": [{"n": 2}]}`)
	share(t, one, d.bearer, "datasets/"+d.path(), "xaver", "viewer")
	postRows(t, one, d.bearer, d.path(), `{"data": [{"n": 1}]}`)
	await(t, "it arrived", func() bool { return len(r.events()) == 2 })
	require.Equal(t, "webhook.test", r.events()[0].Type)
	require.Equal(t, "orders", r.events()[1].Data.Dataset)

	// Two secrets sign after a rotation.
	var rotated webhook

	call(t, http.MethodPost, one.url+"/webhooks/"+made.ID+"/rotate", d.bearer, "").json(t, &rotated)
	require.NotEqual(t, made.Secret, rotated.Secret)
	r.knows(made.Secret, rotated.Secret)
	require.Equal(t, "delivered", h.test(made.ID).Status)
	one.exec(`UPDATE webhooks SET old_until = now() - interval '1 second' WHERE id = $1`, made.ID)
	r.knows(rotated.Secret)
	require.Equal(t, "delivered", h.test(made.ID).Status)

	// What happens while it is paused is not sent later.
	require.Equal(t, http.StatusOK, call(t, http.MethodPatch, one.url+"/webhooks/"+made.ID, d.bearer, `{"active": false}`).status)
	postRows(t, one, d.bearer, d.path(), `{"data": [{"n": 2}]}`)
	requireFault(t, "paused", call(t, http.MethodPost, one.url+"/webhooks/"+made.ID+"/test", d.bearer, ""), http.StatusUnprocessableEntity, "INVALID_STATE")
	await(t, "the event has its number", func() bool { return one.count(`SELECT count(*) FROM new_events`) == 0 })
	require.Equal(t, http.StatusOK, call(t, http.MethodPatch, one.url+"/webhooks/"+made.ID, d.bearer, `{"active": true}`).status)
	require.Equal(t, "delivered", h.test(made.ID).Status)
	require.Equal(t, "webhook.test", r.events()[len(r.events())-1].Type)
	require.Len(t, r.events(), 5)

	// Another secret of the service is noticed.
	one.exec(`UPDATE webhooks SET secret_check = '\x00' WHERE id = $1`, made.ID)
	require.Equal(t, "secret", h.test(made.ID).Problem)

	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, one.url+"/webhooks/"+made.ID, d.bearer, "").status)
	require.Zero(t, one.count(`SELECT count(*) FROM webhook_lanes WHERE webhook_id = '`+made.ID+`'`))
}

// webhookRights checks that nothing is sent that the maker may not see, and that a webhook ends with its token.
func webhookRights(t *testing.T, one, _ *service, key *signer) {
	t.Helper()

	d := newFilled(t, one, "yara", key.token("yara"))
	postRows(t, one, d.bearer, d.path(), `{"data": [{"n": 1}]}`)
	share(t, one, d.bearer, "datasets/"+d.path(), "zoe", "viewer")

	await(t, "earlier events have their numbers", func() bool { return one.count(`SELECT count(*) FROM new_events`) == 0 })

	h, r := webhooks{t, one, key.token("zoe")}, newReceiver(t, accepting)
	theirs := h.create(fmt.Sprintf(`{"url": %q, "username": "yara", "namespace": %q, "datasetName": "orders"}`, r.URL, d.namespace))
	r.knows(theirs.Secret)

	postRows(t, one, d.bearer, d.path(), `{"data": [{"n": 2}]}`)
	await(t, "it arrived", func() bool { return len(r.events()) == 1 })
	unshare(t, one, d.bearer, "datasets/"+d.path(), "zoe")
	postRows(t, one, d.bearer, d.path(), `{"data": [{"n": 3}]}`)
	share(t, one, d.bearer, "datasets/"+d.path(), "someone", "viewer")
	await(t, "nothing waits", func() bool {
		return one.count(`SELECT count(*) FROM new_events`)+one.count(`SELECT count(*) FROM webhook_lanes WHERE webhook_id = '`+theirs.ID+`'`) == 0
	})
	require.Len(t, r.events(), 1)
	require.Len(t, h.deliveries(theirs.ID), 1, "the log tells of what the caller may not see")
	require.Empty(t, h.get(theirs.ID).Namespace)

	// Of others it does not exist.
	for method, path := range map[string]string{"GET": "", "DELETE": "", "POST": "/rotate"} {
		require.Equal(t, http.StatusNotFound, call(t, method, one.url+"/webhooks/"+theirs.ID+path, d.bearer, "").status)
	}

	var token struct{ ID, Token string }

	call(t, http.MethodPost, one.url+"/user/tokens", d.bearer, `{"name": "maker"}`).json(t, &token)

	byToken, told := (webhooks{t, one, token.Token}).create(fmt.Sprintf(`{"url": %q}`, r.URL)), watchEvents(t, d.bearer, "?types=webhook.disabled", one)
	r.knows(byToken.Secret)
	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, one.url+"/user/tokens/"+token.ID, d.bearer, "").status)

	before := len(r.events())

	postRows(t, one, d.bearer, d.path(), `{"data": [{"n": 4}]}`)
	told.awaits(1)
	require.Equal(t, "disabled", (webhooks{t, one, d.bearer}).get(byToken.ID).Status)
	require.Len(t, r.events(), before)
}

// webhookHostile sends many events over two services, of which one is killed, to a receiver that fails, lies, is slow and redirects. Every event must be
// accepted at least once, and in order for each thing.
func webhookHostile(t *testing.T, one, two *service, key *signer) {
	t.Helper()

	things, events := 40, 600
	if full() {
		things, events = 100, 10_000
	}

	d := newFilled(t, one, "abel", key.token("abel"))

	elsewhere := newReceiver(t, accepting)
	r := newReceiver(t, func(w http.ResponseWriter, request *http.Request, _ notice) bool {
		switch rand.IntN(12) {
		case 0:
			w.WriteHeader(http.StatusInternalServerError)
		case 1:
			http.Redirect(w, request, elsewhere.URL, http.StatusTemporaryRedirect)
		case 2: // ends the connection in the middle of the answer
			if connection, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_, _ = io.WriteString(connection, "HTTP/1.1 200 OK\r\nContent-Le")
				_ = connection.Close()
			}
		case 3: // accepts, and never ends the answer
			w.WriteHeader(http.StatusOK)
			_, _ = w.Write(make([]byte, 1<<20))

			return true
		case 4:
			if rand.IntN(20) == 0 {
				time.Sleep(1500 * time.Millisecond) // longer than the sender waits
			}

			w.WriteHeader(http.StatusBadGateway)
		default:
			w.WriteHeader(http.StatusNoContent)

			return true
		}

		return false
	})

	h := webhooks{t, one, d.bearer}
	made := h.create(fmt.Sprintf(`{"url": %q}`, r.URL))
	r.knows(made.Secret)

	began := time.Now()

	withDatabase(t, one.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		_, err := connection.Exec(ctx, `
		INSERT INTO new_events (account_id, event_id, type, kind, subject_account, subject_id, namespace_id, token_id, data, at)
		SELECT account_id, gen_random_uuid(), 'dataset.loaded', 'dataset', account_id, md5('thing ' || n % $2::int)::uuid, '00000000-0000-0000-0000-000000000000', '00000000-0000-0000-0000-000000000000',
			'{"dataset": "' || n % $2::int || '", "rows": ' || n || '}', now()
		FROM directory_names, generate_series(1, $1::int) n WHERE username = 'abel' ORDER BY n`, events, things)
		require.NoError(t, err)
	})

	accepted := func() int {
		seen := map[string]bool{}

		for _, one := range r.requests() {
			if one.accepted {
				seen[one.ID] = true
			}
		}

		return len(seen)
	}

	await(t, "some are sent", func() bool { return accepted() > events/10 })
	two.kill()
	two.restart()
	awaitFor(t, 20*time.Minute, "all are delivered", func() bool {
		return accepted() == events && one.count(`SELECT count(*) FROM webhook_deliveries WHERE state = 'waiting' AND webhook_id = '`+made.ID+`'`) == 0
	})
	t.Logf("%d events in %v, with %d requests", events, time.Since(began).Round(time.Second), len(r.requests()))

	last := map[string]int64{}

	for _, one := range r.requests() {
		n := *one.Data.Rows
		// Only the next one, or one that was accepted before.
		require.True(t, n <= last[one.Data.Dataset] || n == last[one.Data.Dataset]+int64(things) || last[one.Data.Dataset] == 0 && n <= int64(things), "%d after %d", n, last[one.Data.Dataset])

		if one.accepted {
			last[one.Data.Dataset] = max(last[one.Data.Dataset], n)
		}
	}

	require.Empty(t, elsewhere.requests(), "a redirect was followed")

	for _, one := range h.deliveries(made.ID) {
		require.Equal(t, "delivered", one.Status)
	}
}

// webhookRefused tries to reach addresses that are not public, by names, by numbers and by redirects, and addresses with a wrong certificate. A listener stands
// for what must not be reached.
func webhookRefused(t *testing.T, one, _ *service, key *signer) {
	t.Helper()

	strict := start(t, "QUERN_WEBHOOK_TIMEOUT=1s", "QUERN_WEBHOOK_RETRY_INTERVAL=1h")
	h := webhooks{t, strict, strict.newKey().token("bodo")}

	var reached atomic.Int64

	inner := &httptest.Server{Listener: listenAll(t), Config: &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) })}}

	inner.StartTLS()
	defer inner.Close()

	_, port, err := net.SplitHostPort(inner.Listener.Addr().String())
	require.NoError(t, err)

	for _, host := range []string{"127.0.0.1", "[::1]", "0.0.0.0", "[::]", "[::ffff:127.0.0.1]", "169.254.169.254", "10.0.0.1", "192.168.1.1", "[fd00:ec2::254]", "[64:ff9b::7f00:1]"} {
		requireFault(t, host, call(t, http.MethodPost, strict.url+"/webhooks", h.bearer, fmt.Sprintf(`{"url": "https://%s:%s/"}`, host, port)), http.StatusUnprocessableEntity, "VALIDATION_FAILED")
	}

	requireFault(t, "http", call(t, http.MethodPost, strict.url+"/webhooks", h.bearer, `{"url": "http://example.com"}`), http.StatusUnprocessableEntity, "VALIDATION_FAILED")

	// Whatever an address is, the connection is refused: numbers, and names and forms of numbers that only the resolver understands. The addresses are put into
	// the database, past the check of requests.
	hosts := []string{
		"127.0.0.1", "127.1.2.3", "0.0.0.0", "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.254", "192.168.0.1", "169.254.169.254", "169.254.170.2", "100.64.0.1", "100.100.100.200",
		"192.0.0.1", "192.0.0.192", "192.88.99.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "[::]", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:169.254.169.254]", "[::127.0.0.1]",
		"[::ffff:0:127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::1]", "[fd00:ec2::254]", "[fc00::1]", "[fe80::1%25lo]", "[fec0::1]", "[ff02::1]", "[2001::1]", "[2002:7f00:1::]",
		"[2a00:1450:4001::5efe:127.0.0.1]", "[100::1]", "[5f00::1]",
		"localhost", "localhost.", "LOCALHOST", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "ip6-localhost",
	}

	sent := map[string]string{}

	for _, host := range hosts {
		sent[host] = h.create(`{"url": "https://receiver.invalid/"}`).ID
		strict.exec(`UPDATE webhooks SET url = $2 WHERE id = $1`, sent[host], "https://"+host+":"+port+"/")
		require.Equal(t, http.StatusOK, call(t, http.MethodPost, strict.url+"/webhooks/"+sent[host]+"/test", h.bearer, "").status)
	}

	for _, host := range hosts {
		var tried []delivery

		await(t, host+" is tried", func() bool {
			tried = h.deliveries(sent[host])

			return len(tried) == 1 && tried[0].Attempts > 0
		})

		problems := []string{"address"}
		if strings.Trim(host, "[]0123456789abcdef.:%lo") != "" || strings.HasPrefix(host, "0177") || strings.Count(host, ".") < 3 && !strings.HasPrefix(host, "[") {
			problems = append(problems, "connect", "timeout") // no resolver may know it
		}

		require.Contains(t, problems, tried[0].Problem, host)
	}

	require.Zero(t, reached.Load())

	// A certificate that nobody vouches for, where the network is allowed.
	open := webhooks{t, one, key.token("bodo")}
	made := open.create(fmt.Sprintf(`{"url": "https://127.0.0.1:%s/"}`, port))
	require.Equal(t, "tls", open.test(made.ID).Problem)
	require.Zero(t, reached.Load())
}

// listenAll listens at all addresses of this machine.
func listenAll(t *testing.T) net.Listener {
	t.Helper()

	listener, err := net.Listen("tcp", ":0")
	require.NoError(t, err)

	return listener
}
