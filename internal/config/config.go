// Package config turns the environment into structs. Every setting is a field with its name,
// default and meaning in its tags, so that the loader and docs/configuration.md cannot differ.
//
// A setting NAME may also be given as NAME_FILE: the path of a file that holds the value.
package config

//go:generate go test . -run TestReferenceIsCurrent -update

import (
	"net/netip"
	"time"
)

// Serve is what `quernd serve` needs.
type Serve struct {
	Server   Server   `prefix:"QUERN_"`
	Database Database `prefix:"QUERN_DATABASE_"`
	Data     Data     `prefix:"QUERN_"`
	S3       S3       `prefix:"QUERN_S3_"`
	Upload   Upload   `prefix:"QUERN_UPLOAD_"`
	Job      Job      `prefix:"QUERN_JOB_"`
	Sandbox  Sandbox  `prefix:"QUERN_SANDBOX_"`
	Ingest   Ingest   `prefix:"QUERN_INGEST_"`
	Upkeep   Upkeep   `prefix:"QUERN_UPKEEP_"`
	Query    Query    `prefix:"QUERN_QUERY_"`
	Export   Export   `prefix:"QUERN_EXPORT_"`
	Run      Run      `prefix:"QUERN_RUN_"`
	Cache    Cache    `prefix:"QUERN_CACHE_"`
	Model    Model    `prefix:"QUERN_"`
	Tracing  Tracing  `prefix:"QUERN_TRACING_"`
	OIDC     OIDC     `prefix:"QUERN_OIDC_"`
	Token    Token    `prefix:"QUERN_TOKEN_"`
	Log      Log      `prefix:"QUERN_LOG_"`
}

// Operate is what the commands on the database need.
type Operate struct {
	Database Database `prefix:"QUERN_DATABASE_"`
	Data     Data     `prefix:"QUERN_"`
	Log      Log      `prefix:"QUERN_LOG_"`
}

// Server is the two listeners and what every request meets.
type Server struct {
	ListenAddr      string         `env:"LISTEN_ADDR" default:"127.0.0.1:8080" help:"Address of the API."`
	AdminAddr       string         `env:"ADMIN_ADDR" default:"127.0.0.1:9090" help:"Address of metrics, pprof and detailed readiness. Keep it private: it asks for no token."`
	PublicURL       Origin         `env:"PUBLIC_URL" required:"true" help:"How clients reach the service, without a path, for example https://quern.example.com. Links in answers start with it."`
	Secret          Secret         `env:"SECRET" required:"true" minlen:"32" help:"At least 32 characters, the same on every replica. API tokens made with an Idempotency-Key are derived from it."`
	TrustedProxies  []netip.Prefix `env:"TRUSTED_PROXIES" help:"Networks (CIDR, separated by commas) whose X-Forwarded-For and X-Request-Id are believed."`
	CORSOrigins     []string       `env:"CORS_ORIGINS" help:"Origins (separated by commas) whose pages may call the API from a browser."`
	RateLimit       float64        `env:"RATE_LIMIT" default:"0" help:"Requests a second for each caller on each replica; 0 means no limit."`
	RateBurst       int            `env:"RATE_BURST" default:"50" help:"Requests that a caller may make at once before RATE_LIMIT holds."`
	MaxBody         Bytes          `env:"MAX_BODY" default:"1MiB" help:"Largest JSON body."`
	RequestTimeout  time.Duration  `env:"REQUEST_TIMEOUT" default:"30s" help:"Longest time for an ordinary request; then TIMEOUT."`
	DrainDelay      time.Duration  `env:"DRAIN_DELAY" default:"3s" help:"After a stop signal: how long /readyz says no before connections are closed, so that load balancers can leave."`
	ShutdownTimeout time.Duration  `env:"SHUTDOWN_TIMEOUT" default:"20s" help:"After that delay: how long running requests may take to end."`
}

// Database is PostgreSQL.
type Database struct {
	URL            Secret        `env:"URL" required:"true" help:"PostgreSQL 15 or newer: postgres://user:password@host:port/name. TLS by sslmode and sslrootcert. May lead to a pooler."`
	DirectURL      Secret        `env:"DIRECT_URL" help:"The same database past the pooler, for migrations and locks; URL if empty."`
	Pooler         bool          `env:"POOLER" default:"false" help:"URL leads to a pooler in transaction mode (PgBouncer): no prepared statements, no session settings. Give the role its timeouts with ALTER ROLE instead."`
	MaxConns       int           `env:"MAX_CONNS" default:"20" help:"Connections of this process. All replicas together must stay below max_connections."`
	AcquireTimeout time.Duration `env:"ACQUIRE_TIMEOUT" default:"2s" help:"How long a request waits for a connection; then UNAVAILABLE."`
	QueryTimeout   time.Duration `env:"QUERY_TIMEOUT" default:"15s" help:"Longest statement (statement_timeout)."`
	LockTimeout    time.Duration `env:"LOCK_TIMEOUT" default:"5s" help:"Longest wait for a lock (lock_timeout)."`
}

// Data is the rule for what people keep.
type Data struct {
	DeleteGrace time.Duration `env:"DELETE_GRACE" default:"168h" help:"How long a deleted dataset can be restored. Must exceed the age of the oldest backup that you would restore."`
	SnapshotAge time.Duration `env:"SNAPSHOT_AGE" default:"720h" help:"How long earlier states of a dataset can be read and restored after they were replaced; at least DELETE_GRACE. Their files go DELETE_GRACE later."`
}

// Inspect is what `quernd fsck` needs.
type Inspect struct {
	Operate
	S3 S3 `prefix:"QUERN_S3_"`
}

// S3 is the object store.
type S3 struct {
	Endpoint       URL    `env:"ENDPOINT" required:"true" help:"The object store, for example https://s3.eu-central-1.amazonaws.com."`
	PublicEndpoint URL    `env:"PUBLIC_ENDPOINT" help:"How clients reach it, if not by ENDPOINT: presigned addresses begin with it."`
	Region         string `env:"REGION" default:"us-east-1" help:"Region for signatures."`
	Bucket         string `env:"BUCKET" required:"true" help:"Bucket. It must exist."`
	Prefix         string `env:"PREFIX" help:"Prefix of all keys, so that a bucket can be shared with others."`
	AccessKey      Secret `env:"ACCESS_KEY" required:"true" help:"Access key."`
	SecretKey      Secret `env:"SECRET_KEY" required:"true" help:"Secret key."`
	PathStyle      bool   `env:"PATH_STYLE" default:"true" help:"The bucket is in the path, as most compatible stores want it, and not in the host name."`
	Connection
}

// Upload is the rule for upload sessions.
type Upload struct {
	MaxOpenSessions int   `env:"MAX_OPEN_SESSIONS" default:"100" help:"Upload sessions that a user may have open at once."`
	MaxOpenBytes    Bytes `env:"MAX_OPEN_BYTES" default:"10240GiB" help:"Bytes that a user may have declared in open sessions."`
	MaxFile         Bytes `env:"MAX_FILE" default:"5120GiB" help:"Largest file."`
}

// Job is how work after requests is run.
type Job struct {
	Notify  bool `env:"NOTIFY" default:"false" help:"Wake workers by NOTIFY instead of letting them poll. It takes a lock of the whole database in each transaction that makes a job."`
	Workers int  `env:"WORKERS" default:"4" help:"Housekeeping jobs that this process works at once; 0: none."`
}

// Sandbox is where and how people's bytes are read.
type Sandbox struct {
	Dir   string `env:"DIR" default:"/var/tmp/quern" help:"Folder for files on their way: what children read and write, and copies of data files. Local and fast; nothing in it is needed after a restart. Each process has one of its own."`
	Least string `env:"LEAST" default:"reduced" oneof:"full reduced none" help:"Least isolation of the processes that read people's files. full: Landlock with network rules, and seccomp. reduced: an older Landlock, and seccomp. none: whatever the kernel gives; a hostile file can then do what the service can."`
	Max   int    `env:"MAX" default:"16" help:"Sealed processes that work at once; more wait."`
	Ready int    `env:"READY" default:"2" help:"Sealed processes that wait for work. Each takes about 20 MB."`
}

// Ingest is the rule for reading files.
type Ingest struct {
	Workers     int           `env:"WORKERS" default:"2" help:"Ingestions that this process works at once; 0: none. One more is for files above 64 MiB."`
	Memory      Bytes         `env:"MEMORY" default:"1GiB" help:"Memory of one ingestion for the engine; its process may map twice as much and 512 MiB."`
	Threads     int           `env:"THREADS" default:"2" help:"Threads of one ingestion."`
	Disk        Bytes         `env:"DISK" default:"100GiB" help:"Disk that one ingestion may take."`
	Time        time.Duration `env:"TIME" default:"1h" help:"Longest time for one ingestion."`
	MaxRows     Bytes         `env:"MAX_ROWS" default:"64MiB" help:"Largest body of posted rows."`
	PerUser     int           `env:"PER_USER" default:"64" help:"Bodies of posted rows that one user may have under way on this process; then RATE_LIMITED. 0: any number."`
	MaxColumns  int           `env:"MAX_COLUMNS" default:"2000" help:"Most columns of a dataset."`
	MaxUnpacked Bytes         `env:"MAX_UNPACKED" default:"64GiB" help:"Largest file when it is unpacked."`
}

// Upkeep is the rule for what tables need besides their rows: profiles and compaction.
type Upkeep struct {
	Workers int           `env:"WORKERS" default:"1" help:"Tables that this process cares for at once; 0: none. Each takes QUERN_UPKEEP_MEMORY."`
	Every   time.Duration `env:"EVERY" default:"10s" help:"How often it looks which tables need something."`
	Quiet   time.Duration `env:"QUIET" default:"30s" help:"A dataset is profiled when nothing was added for so long, or when it has grown by a tenth."`
	Memory  Bytes         `env:"MEMORY" default:"512MiB" help:"Memory for the engine; what does not fit goes to disk. Its process may map twice as much and 512 MiB."`
	Disk    Bytes         `env:"DISK" default:"10GiB" help:"Disk that it may take for one table."`
	Time    time.Duration `env:"TIME" default:"30m" help:"Longest time for one table."`
}

// Run is the rule for questions.
type Run struct {
	Workers  int           `env:"WORKERS" default:"8" help:"Questions that this process works at once; 0: none."`
	Time     time.Duration `env:"TIME" default:"10m" help:"Longest time for one question; then it has expired."`
	PerUser  int           `env:"PER_USER" default:"5" help:"Questions that one user may have running; then RATE_LIMITED."`
	Streams  int           `env:"STREAMS_PER_USER" default:"100" help:"Streams of events that one user may have open on this process; then RATE_LIMITED. 0: any number."`
	Poll     time.Duration `env:"POLL" default:"100ms" help:"How often this process looks for new events of the runs that somebody follows."`
	Keep     time.Duration `env:"KEEP" default:"0s" help:"How long a question and its answer are kept after its end; a conversation goes with its last question. 0s: until they are deleted."`
	Opinion  bool          `env:"SECOND_OPINION" default:"true" help:"A simple question that a model answers is read by rules too: one more statement, and where the results differ the model is asked once more."`
	Scripted bool          `env:"SCRIPTED" default:"false" help:"Agents that do what the question says, which is JSON: for tests of clients, without a model."`
}

// Query is the rule for statements.
type Query struct {
	Time    time.Duration `env:"TIME" default:"60s" help:"Longest time for one statement; then TIMEOUT."`
	Memory  Bytes         `env:"MEMORY" default:"1GiB" help:"Memory of one statement for the engine; what does not fit goes to disk. Its process may map twice as much and 512 MiB."`
	Threads int           `env:"THREADS" default:"0" help:"Threads of one statement; 0: as many as there are processors."`
	Disk    Bytes         `env:"DISK" default:"10GiB" help:"Disk that one statement may take, its result included."`
	Rows    int           `env:"ROWS" default:"10000" help:"Rows of a result, unless the statement has a LIMIT of its own."`
	MaxRows int           `env:"MAX_ROWS" default:"100000" help:"Rows of a result, whatever LIMIT says."`
	Bytes   Bytes         `env:"BYTES" default:"64MiB" help:"Bytes of a result in JSON; what is more is cut off."`
	Running int           `env:"RUNNING" default:"0" help:"Statements that run at once in this process; 0: as many as there is memory for, of the container if it has a limit, and at most four for each processor. One user has at most half of them, and at least one."`
	PerUser int           `env:"PER_USER" default:"10" help:"Statements that one user may have running or waiting on this process; then RATE_LIMITED."`
	Queue   int           `env:"QUEUE" default:"100" help:"Statements that may wait for a place; then UNAVAILABLE."`
	Wait    time.Duration `env:"WAIT" default:"5s" help:"How long a statement waits for a place; then UNAVAILABLE."`
}

// Export is the rule for datasets as files.
type Export struct {
	Stream  Bytes         `env:"STREAM" default:"64MiB" help:"A dataset whose data files are at most this large is exported in the answer. A larger one is written to the object store by a job."`
	Workers int           `env:"WORKERS" default:"1" help:"Such exports that this process writes at once; 0: none. Each takes the memory and the threads of a statement."`
	Time    time.Duration `env:"TIME" default:"1h" help:"Longest time for writing one."`
	Disk    Bytes         `env:"DISK" default:"100GiB" help:"Disk that one may take while it is written; also the largest file."`
	Keep    time.Duration `env:"KEEP" default:"24h" help:"How long a file is given to those who ask for the same snapshot and format. It is removed soon after."`
}

// Cache is the copies of data files on the local disk.
type Cache struct {
	Bytes Bytes `env:"BYTES" default:"10GiB" help:"Room for copies of data files on the local disk, in a folder of SANDBOX_DIR."`
}

// Tracing is the store for traces of questions and for ratings.
type Tracing struct {
	Kind        string `env:"KIND" default:"none" oneof:"none phoenix langfuse otlp" help:"What the store is. none: nothing is sent, and ratings are kept in the database alone. otlp: any other store or collector; it gets spans and no ratings."`
	Endpoint    URL    `env:"ENDPOINT" help:"Where it is, without the path of an operation, for example https://phoenix.example.com."`
	Key         Secret `env:"KEY" help:"Phoenix: its API key, if it wants one. Langfuse: the public key, a colon, the secret key. Others: a bearer token."`
	Headers     Secret `env:"HEADERS" help:"More headers for each call: name=value, separated by commas."`
	Project     string `env:"PROJECT" default:"quern" help:"Project in Phoenix."`
	Environment string `env:"ENVIRONMENT" default:"production" help:"Which deployment it is: lower-case letters, digits, - and _."`
	Capture     bool   `env:"CAPTURE" default:"false" help:"Questions, statements and answers go into the spans. They stay in the store when a run is deleted or access to its data ends. Rows are never sent."`
	Connection
}

// OIDC is the issuer that says who people are.
type OIDC struct {
	Issuer        URL           `env:"ISSUER" required:"true" help:"The issuer exactly as it stands in the tokens' iss claim. Its discovery document is read when first needed; a start does not depend on it."`
	Audience      []string      `env:"AUDIENCE" required:"true" help:"Accepted audiences (separated by commas): a token must carry one of them in aud."`
	UsernameClaim string        `env:"USERNAME_CLAIM" default:"preferred_username" help:"Claim that gives a new account its username. Fixed from the first request on."`
	GroupsClaim   string        `env:"GROUPS_CLAIM" default:"groups" help:"Claim with the caller's groups."`
	GroupsMaxAge  time.Duration `env:"GROUPS_MAX_AGE" default:"720h" help:"API tokens act with the groups of their owner's last sign-in; after this time without a sign-in, without groups."`
	Algorithms    []string      `env:"ALGORITHMS" default:"RS256,ES256,PS256,EdDSA" help:"Accepted signature algorithms. Never symmetric ones."`
	ClockSkew     time.Duration `env:"CLOCK_SKEW" default:"60s" help:"Tolerated difference between our clock and the issuer's."`
	KeysRefresh   time.Duration `env:"KEYS_REFRESH" default:"5m" help:"How often the issuer's keys are read again; a removed key is refused after at most this time."`
	KeysMaxAge    time.Duration `env:"KEYS_MAX_AGE" default:"24h" help:"How long the last good keys are used while the issuer does not answer."`
	Connection
}

// Connection is how one outside system is reached.
type Connection struct {
	CAFile  string        `env:"CA_FILE" help:"PEM file of certificate authorities for this connection, instead of the system's."`
	Proxy   URL           `env:"PROXY" help:"HTTP proxy for this connection. HTTP_PROXY and its kin are not read."`
	Timeout time.Duration `env:"TIMEOUT" default:"5s" help:"Longest time for one request on this connection."`
}

// Token is the rule for API tokens.
type Token struct {
	DefaultLifetime time.Duration `env:"DEFAULT_LIFETIME" default:"2160h" help:"Lifetime of an API token made without expires_at."`
	MaxLifetime     time.Duration `env:"MAX_LIFETIME" default:"8760h" help:"Longest lifetime of an API token."`
}

// Log is what goes to standard error.
type Log struct {
	Level  string `env:"LEVEL" default:"info" oneof:"debug info warn error" help:"Least level written."`
	Format string `env:"FORMAT" default:"json" oneof:"json text" help:"json or text."`
}
