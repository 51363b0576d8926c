// Package config reads the environment into structs. Every setting is a field with its name, default and meaning in its
// tags, so that the loader and docs/configuration.md cannot differ.
//
// A setting NAME may also be given as NAME_FILE: the path of a file that contains the value.
package config

//go:generate go test . -run TestReferenceIsCurrent -update

import (
	"net/netip"
	"time"
)

// Serve contains the settings of `quernd serve`. title and about are the heading of a group in docs/configuration.md and
// the page that explains its subject. A field without a title belongs to the group before it.
type Serve struct {
	Server      Server      `prefix:"QUERN_" title:"Requests and shutdown" about:"operations.md#stop"`
	Console     Console     `prefix:"QUERN_" title:"Console" about:"console.md"`
	Database    Database    `prefix:"QUERN_DATABASE_" title:"PostgreSQL" about:"operations.md#postgresql"`
	Data        Data        `prefix:"QUERN_" title:"Retention of data" about:"operations.md#tables-over-the-years"`
	S3          S3          `prefix:"QUERN_S3_" title:"Object store" about:"operations.md#the-object-store"`
	Upload      Upload      `prefix:"QUERN_UPLOAD_" title:"Uploads" about:"operations.md#the-object-store"`
	Job         Job         `prefix:"QUERN_JOB_" title:"Cleanup jobs" about:"operations.md#jobs"`
	Sandbox     Sandbox     `prefix:"QUERN_SANDBOX_" title:"Sandbox, work folder and cache" about:"operations.md#sandbox-disk-and-memory"`
	Cache       Cache       `prefix:"QUERN_CACHE_"`
	Ingest      Ingest      `prefix:"QUERN_INGEST_" title:"Ingestions and posted rows" about:"ingest.md#limits"`
	Maintenance Maintenance `prefix:"QUERN_MAINTENANCE_" title:"Maintenance of tables" about:"lake.md#compaction"`
	Query       Query       `prefix:"QUERN_QUERY_" title:"Statements" about:"query.md#limits"`
	Export      Export      `prefix:"QUERN_EXPORT_" title:"Exports" about:"query.md#a-dataset-as-a-file"`
	Statement   Statement   `prefix:"QUERN_STATEMENT_" title:"Long statements" about:"query.md#long-statements"`
	Catalog     Catalog     `prefix:"QUERN_CATALOG_" title:"Trino" about:"trino.md"`
	Trino       Trino       `prefix:"QUERN_TRINO_"`
	Run         Run         `prefix:"QUERN_RUN_" title:"Questions" about:"run.md#limits"`
	Webhook     Webhook     `prefix:"QUERN_WEBHOOK_" title:"Webhooks" about:"events.md#webhooks"`
	Source      Source      `prefix:"QUERN_SOURCE_" title:"Connections and sources" about:"sources.md#for-operators"`
	Model       Model       `prefix:"QUERN_" title:"Language models" about:"models.md"`
	Tracing     Tracing     `prefix:"QUERN_TRACING_" title:"Tracing store" about:"tracing.md"`
	Spans       Spans       `prefix:"QUERN_SPANS_" title:"Traces of the service" about:"tracing.md#traces-of-the-service"`
	OIDC        OIDC        `prefix:"QUERN_OIDC_" title:"Identity provider" about:"operations.md#the-issuer"`
	Token       Token       `prefix:"QUERN_TOKEN_" title:"API tokens" about:"security.md#api-tokens"`
	Log         Log         `prefix:"QUERN_LOG_" title:"Log" about:"operations.md#logs"`
}

// Operate contains the settings of the commands on the database.
type Operate struct {
	Database Database `prefix:"QUERN_DATABASE_"`
	Data     Data     `prefix:"QUERN_"`
	Source   Source   `prefix:"QUERN_SOURCE_"`
	Trino    Trino    `prefix:"QUERN_TRINO_"`
	Log      Log      `prefix:"QUERN_LOG_"`
}

// Server configures the two listeners and the handling of every request.
type Server struct {
	ListenAddr      string         `env:"LISTEN_ADDR" essential:"true" default:"127.0.0.1:8080" format:"address" help:"Address of the API."`
	AdminAddr       string         `env:"ADMIN_ADDR" default:"127.0.0.1:9090" format:"address" help:"Address of metrics, pprof and detailed readiness. It requires no token, so keep it private."`
	PublicURL       Origin         `env:"PUBLIC_URL" required:"true" help:"Address at which clients reach the service, without a path, for example https://quern.example.com. Links in responses start with it."`
	Secret          Secret         `env:"SECRET" required:"true" minlen:"32" help:"Random text of at least 32 characters, the same on every replica. API tokens that are created with an Idempotency-Key, and the secrets of webhooks, are derived from it."`
	TrustedProxies  []netip.Prefix `env:"TRUSTED_PROXIES" essential:"true" help:"Networks (CIDR, separated by commas) of the proxies in front of the service. Their X-Forwarded-For, X-Request-Id and Traceparent headers are trusted."`
	CORSOrigins     []string       `env:"CORS_ORIGINS" format:"origin" help:"Origins (separated by commas) whose pages may call the API from a browser."`
	RateLimit       float64        `env:"RATE_LIMIT" default:"0" min:"0" max:"1000000" help:"Requests per second of one caller on one replica. 0: no limit."`
	RateBurst       int            `env:"RATE_BURST" default:"50" min:"1" max:"1000000" help:"Requests that a caller may send at once before QUERN_RATE_LIMIT applies."`
	MaxBody         Bytes          `env:"MAX_BODY" default:"1MiB" min:"100" max:"1GiB" help:"Largest JSON body."`
	RequestTimeout  time.Duration  `env:"REQUEST_TIMEOUT" default:"30s" min:"1s" max:"1h" help:"Longest duration of an ordinary request. Then it fails with TIMEOUT."`
	DrainDelay      time.Duration  `env:"DRAIN_DELAY" default:"3s" min:"0s" max:"10m" help:"How long /readyz reports not ready after a stop signal, before connections are closed. It gives load balancers time to notice."`
	ShutdownTimeout time.Duration  `env:"SHUTDOWN_TIMEOUT" default:"20s" min:"0s" max:"1h" help:"How long requests in progress may take to finish after QUERN_DRAIN_DELAY."`
}

// Console configures the web pages.
type Console struct {
	Enabled  bool   `env:"CONSOLE" default:"true" help:"Serve the console, the web pages of Quern, at /."`
	ClientID string `env:"CONSOLE_CLIENT_ID" default:"quern-console" format:"name" help:"Client ID of the console at the identity provider: a public client with authorization code and PKCE, whose redirect address is QUERN_PUBLIC_URL with the path /callback."`
	Scope    string `env:"CONSOLE_SCOPE" default:"openid profile" format:"text" help:"Scopes (separated by spaces) that the console requests. Some identity providers need one more to put QUERN_OIDC_AUDIENCE into tokens."`
}

// Database configures the connection to PostgreSQL.
type Database struct {
	URL            Secret        `env:"URL" required:"true" help:"PostgreSQL 15 or newer: postgres://user:password@host:port/name. sslmode and sslrootcert configure TLS. The address may be that of a connection pooler."`
	DirectURL      Secret        `env:"DIRECT_URL" help:"Address of the same database without the pooler, for migrations and locks. Empty: same as QUERN_DATABASE_URL."`
	Pooler         bool          `env:"POOLER" default:"false" help:"Set to true if QUERN_DATABASE_URL is the address of a pooler in transaction mode, such as PgBouncer. Quern then uses no named prepared statements and no session settings; set the timeouts of the role with ALTER ROLE."`
	MaxConns       int           `env:"MAX_CONNS" default:"20" min:"1" max:"10000" help:"Connections of this process. The sum over all replicas must stay below max_connections of PostgreSQL."`
	AcquireTimeout time.Duration `env:"ACQUIRE_TIMEOUT" default:"2s" min:"10ms" max:"5m" help:"How long a request waits for a connection. Then it fails with UNAVAILABLE."`
	QueryTimeout   time.Duration `env:"QUERY_TIMEOUT" default:"15s" min:"100ms" max:"1h" help:"Longest duration of a statement in PostgreSQL (statement_timeout)."`
	LockTimeout    time.Duration `env:"LOCK_TIMEOUT" default:"5s" min:"10ms" max:"1h" help:"Longest wait for a lock (lock_timeout)."`
}

// Data configures how long deleted and replaced data is kept.
type Data struct {
	DeleteGrace       time.Duration `env:"DELETE_GRACE" default:"168h" min:"1s" max:"87600h" help:"How long a deleted dataset can be restored. Set it longer than the age of the oldest backup that you would restore."`
	SnapshotRetention time.Duration `env:"SNAPSHOT_RETENTION" default:"720h" min:"1s" max:"876000h" help:"How long a replaced snapshot can be read and restored. At least QUERN_DELETE_GRACE. Its files are removed QUERN_DELETE_GRACE later."`
}

// Inspect contains the settings of `quernd fsck`, `store`, `backup` and `restore`.
type Inspect struct {
	Operate
	S3 S3 `prefix:"QUERN_S3_"`
}

// S3 configures the object store.
type S3 struct {
	Endpoint       URL    `env:"ENDPOINT" required:"true" help:"Address of the object store, for example https://s3.eu-central-1.amazonaws.com."`
	PublicEndpoint URL    `env:"PUBLIC_ENDPOINT" help:"Address at which clients reach the object store, if it differs from QUERN_S3_ENDPOINT. Presigned addresses start with it."`
	Region         string `env:"REGION" default:"us-east-1" format:"name" help:"Region that requests are signed for."`
	Bucket         string `env:"BUCKET" required:"true" format:"name" help:"Bucket of the object store. It must exist."`
	Prefix         string `env:"PREFIX" format:"name" help:"Prefix of all keys. It lets several applications share a bucket."`
	AccessKey      Secret `env:"ACCESS_KEY" required:"true" help:"Access key of the object store."`
	SecretKey      Secret `env:"SECRET_KEY" required:"true" help:"Secret key of the object store."`
	PathStyle      bool   `env:"PATH_STYLE" default:"true" help:"Put the bucket into the path instead of the host name. Most S3-compatible stores need it."`
	Connection
}

// Upload limits upload sessions.
type Upload struct {
	MaxOpenSessions int   `env:"MAX_OPEN_SESSIONS" default:"100" min:"1" max:"1000000" help:"Upload sessions that one user may have open."`
	MaxOpenBytes    Bytes `env:"MAX_OPEN_BYTES" default:"10240GiB" min:"1" max:"1048576GiB" help:"Total size of the files that one user may declare in open upload sessions."`
	MaxFile         Bytes `env:"MAX_FILE" default:"5120GiB" min:"1" max:"5120GiB" help:"Largest file."`
}

// Job configures how background jobs are found and how many cleanup jobs run.
type Job struct {
	Notify  bool `env:"NOTIFY" default:"false" help:"Wake workers with NOTIFY instead of polling. NOTIFY takes a database-wide lock in each transaction that creates a job."`
	Workers int  `env:"WORKERS" default:"4" min:"0" max:"1000" help:"Cleanup jobs that this process runs at once. 0: none."`
}

// Sandbox configures the sealed processes and the work folder.
type Sandbox struct {
	Dir           string `env:"DIR" essential:"true" default:"/var/tmp/quern" format:"path" help:"Work folder: files that sealed processes read and write, and cached copies of data files. Use a fast local disk. The content is not needed after a restart. Each process needs its own folder."`
	Engine        string `env:"ENGINE" format:"path" help:"Path of quern-engine, the program of the sealed processes. It must be of the same version as quernd. Empty: the file quern-engine in the folder of quernd."`
	MinIsolation  string `env:"MIN_ISOLATION" default:"reduced" oneof:"full reduced none" help:"Weakest isolation of sealed processes that is accepted. full: Landlock with network rules, and seccomp. reduced: an older Landlock, and seccomp. none: whatever the kernel offers; a hostile file could then do what the service can do."`
	MaxProcesses  int    `env:"MAX_PROCESSES" default:"16" min:"1" max:"10000" help:"Sealed processes that work at once. Further work waits."`
	IdleProcesses int    `env:"IDLE_PROCESSES" default:"2" min:"0" max:"1000" help:"Sealed processes that are started in advance and wait for work. Each takes about 7 MB of memory, and all together 50 MB."`

	ReserveBytes Bytes `env:"RESERVE_BYTES" default:"1GiB" min:"1MiB" max:"1024GiB" help:"Free space to keep on the file system of QUERN_SANDBOX_DIR; more than a tenth of its size counts as a tenth. If less is free, the cache is emptied. If the cache is already empty, work that needs the folder waits or fails with UNAVAILABLE."`
	ReserveFiles int   `env:"RESERVE_FILES" default:"10000" min:"0" max:"1000000000" help:"Free inodes to keep on the same file system; more than a tenth of all its inodes counts as a tenth. If fewer are free, the same happens as with QUERN_SANDBOX_RESERVE_BYTES."`
}

// Ingest limits ingestions and posted rows.
type Ingest struct {
	Workers     int           `env:"WORKERS" default:"2" min:"0" max:"1000" help:"Ingestions that this process runs at once, beside one more of files above 64 MiB. A file of an ingestion that is spread counts as one. 0: none at all."`
	Memory      Bytes         `env:"MEMORY" default:"1GiB" min:"64MiB" max:"1024GiB" help:"Memory of the engine for one ingestion. The sealed process may map twice as much plus 512 MiB."`
	Threads     int           `env:"THREADS" default:"2" min:"1" max:"1024" help:"Threads of one ingestion."`
	Disk        Bytes         `env:"DISK" default:"100GiB" min:"1MiB" max:"1048576GiB" help:"Local disk that one ingestion may use."`
	Timeout     time.Duration `env:"TIMEOUT" default:"1h" min:"1s" max:"168h" help:"Longest duration of one ingestion."`
	MaxBody     Bytes         `env:"MAX_BODY" default:"64MiB" min:"100" max:"16GiB" help:"Largest body of posted rows."`
	SpreadAbove Bytes         `env:"SPREAD_ABOVE" default:"64MiB" min:"1" max:"1048576GiB" help:"Size of all its files above which an ingestion of several files is spread: each file is a job that any process can run."`
	MaxPerUser  int           `env:"MAX_PER_USER" default:"64" min:"0" max:"1000000" help:"Requests with posted rows that one user may have in progress on this process. Further ones fail with RATE_LIMITED. 0: no limit."`
	MaxColumns  int           `env:"MAX_COLUMNS" default:"2000" min:"1" max:"100000" help:"Maximum number of columns of a dataset."`
	MaxUnpacked Bytes         `env:"MAX_UNPACKED" default:"64GiB" min:"1MiB" max:"1048576GiB" help:"Largest size of a file after decompression."`
}

// Maintenance limits the regular work on tables: profiles, value indexes and compaction.
type Maintenance struct {
	Workers     int           `env:"WORKERS" default:"1" min:"0" max:"1000" help:"Tables that this process maintains at once. 0: none. Each takes QUERN_MAINTENANCE_MEMORY."`
	Interval    time.Duration `env:"INTERVAL" default:"10s" min:"100ms" max:"24h" help:"How often this process looks for tables that need maintenance."`
	QuietPeriod time.Duration `env:"QUIET_PERIOD" default:"30s" min:"0s" max:"168h" help:"A new dataset is profiled at once, later when no rows were added for this long, or when it has grown by a tenth."`
	Memory      Bytes         `env:"MEMORY" default:"512MiB" min:"64MiB" max:"1024GiB" help:"Memory of the engine for one table. What does not fit goes to disk. The sealed process may map twice as much plus 512 MiB."`
	Disk        Bytes         `env:"DISK" default:"10GiB" min:"1MiB" max:"1048576GiB" help:"Local disk that maintenance of one table may use."`
	Timeout     time.Duration `env:"TIMEOUT" default:"30m" min:"1s" max:"168h" help:"Longest duration of maintenance of one table."`
}

// Run limits runs and the streams of their events.
type Run struct {
	Workers           int           `env:"WORKERS" default:"8" min:"0" max:"10000" help:"Runs that this process works on at once. 0: none."`
	Timeout           time.Duration `env:"TIMEOUT" default:"10m" min:"1s" max:"168h" help:"Longest duration of a run, waiting included. Then the run expires."`
	MaxPerUser        int           `env:"MAX_PER_USER" default:"5" min:"1" max:"1000000" help:"Runs that one user may have in progress. Further questions fail with RATE_LIMITED."`
	MaxStreamsPerUser int           `env:"MAX_STREAMS_PER_USER" default:"100" min:"0" max:"1000000" help:"Event streams that one user may have open on this process. Further ones fail with RATE_LIMITED. 0: no limit."`
	PollInterval      time.Duration `env:"POLL_INTERVAL" default:"100ms" min:"1ms" max:"1m" help:"How often this process looks for new events of the runs that its clients stream."`
	Retention         time.Duration `env:"RETENTION" default:"0s" min:"0s" max:"876000h" help:"How long a run is kept after its end. A conversation is removed with its last run. 0s: until it is deleted."`
	SecondOpinion     bool          `env:"SECOND_OPINION" default:"true" help:"Compare a model's answer with the planner's, and send what differs or is doubtful back to the model once. Costs one more statement for questions that the planner understands, and one more model call where something differs."`
}

// Webhook configures the sending of events.
type Webhook struct {
	Senders         int            `env:"SENDERS" default:"16" min:"0" max:"10000" help:"Requests to webhooks that this process sends at once. 0: none."`
	AllowedNetworks []netip.Prefix `env:"ALLOWED_NETWORKS" help:"Networks (CIDR, separated by commas) that webhooks may reach although they are not public, for example 10.20.0.0/16. Only these may be reached without TLS."`
	CAFile          string         `env:"CA_FILE" format:"path" help:"PEM file with the certificate authorities of receivers. Empty: those of the system."`
	Timeout         time.Duration  `env:"TIMEOUT" default:"10s" min:"100ms" max:"1m" help:"Longest duration of one request to a webhook."`
	RetryInterval   time.Duration  `env:"RETRY_INTERVAL" default:"5s" min:"1ms" max:"1h" help:"Pause after the first failure of a delivery. It doubles after each further one, up to an hour."`
	RetryTime       time.Duration  `env:"RETRY_TIME" default:"24h" min:"1s" max:"144h" help:"How long a delivery is tried. Then it has failed."`
	DisableAfter    time.Duration  `env:"DISABLE_AFTER" default:"120h" min:"1s" max:"8760h" help:"A webhook whose requests have all failed for this long is disabled."`
}

// Source configures connections to other systems, and what is fetched from them.
type Source struct {
	Key             Secret         `env:"KEY" minlen:"32" help:"Random text of at least 32 characters, the same on every replica. The secrets of connections are encrypted with it. Empty: nobody can make connections."`
	OtherKey        Secret         `env:"OTHER_KEY" minlen:"32" help:"A second key that only decrypts, while the key is changed."`
	Hosts           []string       `env:"HOSTS" format:"host" help:"Hosts (separated by commas) that connections may reach: name, name:port, *.domain or *.domain:port; without a port, that of https. Empty: none."`
	AllowedNetworks []netip.Prefix `env:"ALLOWED_NETWORKS" help:"Networks (CIDR, separated by commas) that connections may reach although they are not public. Only these may be reached without TLS. The host must be in QUERN_SOURCE_HOSTS too."`
	CAFile          string         `env:"CA_FILE" format:"path" help:"PEM file with the certificate authorities of these hosts. Empty: those of the system."`
	Timeout         time.Duration  `env:"TIMEOUT" default:"10s" min:"100ms" max:"10m" help:"Longest duration of one request to them. For a file, until its first byte. For a database, until the connection is made."`

	StatementTimeout time.Duration `env:"STATEMENT_TIMEOUT" default:"5m" min:"100ms" max:"24h" help:"Longest duration of one statement in a database of a connection, which returns one page of rows."`
	PageRows         int           `env:"PAGE_ROWS" default:"50000" min:"1" max:"1000000" help:"Rows that are fetched from a database at once."`
	PageWait         time.Duration `env:"PAGE_WAIT" default:"5ms" min:"0s" max:"1m" help:"How long a load waits between two pages, so that the database has time for others."`
	LoadTimeout      time.Duration `env:"LOAD_TIMEOUT" default:"1h" min:"100ms" max:"168h" help:"Longest duration of the reading of one load, which is one transaction of the database, or of one file behind an HTTPS address."`
	MaxRows          int           `env:"MAX_ROWS" default:"1000000000" min:"1" max:"1000000000000" help:"Largest number of rows of one load from a database."`
	MaxBytes         Bytes         `env:"MAX_BYTES" default:"100GiB" min:"1KiB" max:"1048576GiB" help:"Most bytes of the values of one load from a database."`
}

// Query limits statements.
type Query struct {
	Timeout     time.Duration `env:"TIMEOUT" default:"60s" min:"100ms" max:"24h" help:"Longest duration of one statement. Then it fails with TIMEOUT."`
	Memory      Bytes         `env:"MEMORY" default:"1GiB" min:"16MiB" max:"1024GiB" help:"Memory of the engine for one statement. What does not fit goes to disk. The sealed process may map twice as much plus 512 MiB."`
	Threads     int           `env:"THREADS" default:"0" min:"0" max:"1024" help:"Threads of one statement. 0: one for each processor."`
	Disk        Bytes         `env:"DISK" default:"10GiB" min:"1MiB" max:"1048576GiB" help:"Local disk that one statement may use, including its result."`
	DefaultRows int           `env:"DEFAULT_ROWS" default:"10000" min:"1" max:"100000000" help:"Rows of a result when the statement has no LIMIT."`
	MaxRows     int           `env:"MAX_ROWS" default:"100000" min:"1" max:"100000000" help:"Maximum number of rows in a result, even if LIMIT is higher."`
	MaxBytes    Bytes         `env:"MAX_BYTES" default:"64MiB" min:"1KiB" max:"16GiB" help:"Largest result in JSON. Further rows are cut off."`
	MaxRunning  int           `env:"MAX_RUNNING" default:"0" min:"0" max:"10000" help:"Statements that run at once on this process. 0: as many as fit into memory (of the container, if it has a limit), at most four for each processor. One user gets at most half of them, and at least one."`
	MaxPerUser  int           `env:"MAX_PER_USER" default:"10" min:"1" max:"1000000" help:"Statements that one user may have running or waiting on this process. Further ones fail with RATE_LIMITED."`
	MaxWaiting  int           `env:"MAX_WAITING" default:"100" min:"0" max:"1000000" help:"Statements that may wait for a slot. Further ones fail with UNAVAILABLE."`
	WaitTimeout time.Duration `env:"WAIT_TIMEOUT" default:"5s" min:"0s" max:"1h" help:"How long a statement waits for a slot before it fails with UNAVAILABLE. A statement of a run waits until the run times out."`
}

// Export limits exports of datasets.
type Export struct {
	StreamMaxBytes Bytes         `env:"STREAM_MAX_BYTES" default:"64MiB" min:"1" max:"1024GiB" help:"A dataset whose data files are at most this large is exported in the response. A larger one is written to the object store by a job."`
	Workers        int           `env:"WORKERS" default:"1" min:"0" max:"1000" help:"Exports and long statements that this process runs at once. 0: none. Each takes the memory and the threads of a statement."`
	Timeout        time.Duration `env:"TIMEOUT" default:"1h" min:"1ms" max:"168h" help:"Longest duration of an export job or a long statement."`
	Disk           Bytes         `env:"DISK" default:"100GiB" min:"1MiB" max:"1048576GiB" help:"Local disk that one export job or long statement may use, which is also the largest exported file."`
	Retention      time.Duration `env:"RETENTION" default:"24h" min:"1s" max:"8760h" help:"How long an exported file is given to callers that ask for the same snapshot and format. Then it is removed."`
}

// Statement limits long statements, which workers of exports run.
type Statement struct {
	MaxPerUser int           `env:"MAX_PER_USER" default:"10" min:"1" max:"100000" help:"Long statements of one user, queued or running."`
	MaxBytes   Bytes         `env:"MAX_BYTES" default:"100GiB" min:"1MiB" max:"1048576GiB" help:"Bytes that the results of one user's long statements may have together in the object store."`
	Retention  time.Duration `env:"RETENTION" default:"24h" min:"1s" max:"8760h" help:"How long a long statement and its result are kept after its end. Then they are removed."`
}

// Catalog configures the listener at which Trino finds the tables of a statement.
type Catalog struct {
	Listen string `env:"LISTEN" format:"private" help:"Address of the Iceberg catalog for Trino, for example 10.0.0.7:8181. It must be a loopback or private address. Empty: no catalog."`
	Secret Secret `env:"SECRET" minlen:"32" help:"Random text of at least 32 characters that Trino sends to the catalog, the same on every replica. Required with QUERN_CATALOG_LISTEN."`
}

// Trino configures the cluster that runs the statements that read a dataset on Trino.
type Trino struct {
	URL     URL    `env:"URL" help:"Address of the coordinator, for example https://trino.example.com. Empty: no dataset can be on Trino. Requires QUERN_CATALOG_LISTEN."`
	Catalog string `env:"CATALOG" default:"quern" format:"word" help:"Name of the catalog in Trino: quern, or quern_ and 32 hexadecimal digits."`
	Memory  Bytes  `env:"MEMORY" default:"4GiB" min:"16MiB" max:"1048576GiB" help:"Memory that one statement may use on all workers together."`
	Scan    Bytes  `env:"SCAN" default:"1024GiB" min:"1MiB" max:"1048576GiB" help:"Bytes that one statement may read from the object store."`

	Threshold Bytes `env:"THRESHOLD" min:"1KiB" max:"1048576GiB" help:"Size of its data files beyond which Trino reads a dataset. The change is made once, when a snapshot crosses the threshold, and is in the audit of the owner. Empty: only quernd engine set decides."`

	MaxRunning int `env:"MAX_RUNNING" default:"16" min:"1" max:"10000" help:"Statements that this process has on Trino at once, besides those of QUERN_QUERY_MAX_RUNNING. One user gets at most half of them."`
	Connection
}

// Cache limits the copies of data files on the local disk.
type Cache struct {
	MaxBytes Bytes `env:"MAX_BYTES" default:"10GiB" min:"1MiB" max:"1048576GiB" help:"Size of the cache of data files, in a subfolder of QUERN_SANDBOX_DIR."`
}

// Tracing configures the store for traces of questions and for ratings.
type Tracing struct {
	Kind        string `env:"KIND" default:"none" oneof:"none phoenix langfuse otlp" help:"Kind of tracing store. none: send nothing, and keep ratings in the database only. otlp: any other store or collector, which receives spans but no ratings."`
	Endpoint    URL    `env:"ENDPOINT" help:"Address of the tracing store, without a path, for example https://phoenix.example.com."`
	Key         Secret `env:"KEY" help:"Phoenix: the API key, if it requires one. Langfuse: the public key, a colon, the secret key. Others: a bearer token."`
	Headers     Secret `env:"HEADERS" help:"Further headers of each request: name=value, separated by commas."`
	Project     string `env:"PROJECT" default:"quern" format:"text" help:"Project in Phoenix."`
	Environment string `env:"ENVIRONMENT" default:"production" format:"word" help:"Name of this deployment in traces. Lower-case letters, digits, - and _."`
	Capture     bool   `env:"CAPTURE" default:"false" help:"Include questions, statements and answers in spans. They stay in the tracing store after a run is deleted or access to its data ends. Rows are never sent."`
	Connection
}

// Spans configures where the traces of requests and jobs are sent.
type Spans struct {
	Endpoint    URL     `env:"ENDPOINT" help:"Address of an OpenTelemetry collector or a store that accepts OTLP over HTTP, without /v1/traces. Empty: no traces are sent."`
	Headers     Secret  `env:"HEADERS" help:"Headers of each request to it: name=value, separated by commas."`
	Share       float64 `env:"SHARE" default:"1" min:"0" max:"1" help:"Share of the traces that are sent, from 0 to 1. A trace is sent whole or not at all."`
	Environment string  `env:"ENVIRONMENT" default:"production" format:"word" help:"Name of this deployment in traces. Lower-case letters, digits, - and _."`
	Connection
}

// OIDC configures the issuer that identifies people.
type OIDC struct {
	Issuer        URL           `env:"ISSUER" required:"true" help:"Address of the identity provider, exactly as in the iss claim of its tokens. Its discovery document is read when it is first needed, so Quern starts without it."`
	Audience      []string      `env:"AUDIENCE" required:"true" format:"name" help:"Accepted audiences (separated by commas). The aud claim of a token must contain one of them."`
	UsernameClaim string        `env:"USERNAME_CLAIM" default:"preferred_username" format:"name" help:"Claim that gives a new account its username. Later changes of the claim have no effect."`
	GroupsClaim   string        `env:"GROUPS_CLAIM" default:"groups" format:"name" help:"Claim with the caller's groups."`
	OperatorGroup string        `env:"OPERATOR_GROUP" format:"text" help:"Group whose members are operators: they see health, queues, users and limits under /operator and in the console, and no data. Empty: nobody is one."`
	GroupsMaxAge  time.Duration `env:"GROUPS_MAX_AGE" default:"720h" min:"1s" max:"87600h" help:"How long an API token keeps the groups of its owner's last sign-in. After that it acts without groups until the owner signs in again."`
	Algorithms    []string      `env:"ALGORITHMS" default:"RS256,ES256,PS256,EdDSA" oneof:"RS256 RS384 RS512 ES256 ES384 ES512 PS256 PS384 PS512 EdDSA" help:"Accepted signature algorithms. Symmetric algorithms are never accepted."`
	ClockSkew     time.Duration `env:"CLOCK_SKEW" default:"60s" min:"0s" max:"1h" help:"Tolerated difference between the clocks of Quern and the issuer."`
	KeysRefresh   time.Duration `env:"KEYS_REFRESH" default:"5m" min:"1s" max:"24h" help:"How often the keys of the issuer are read again. A removed key is refused after at most this time."`
	KeysMaxAge    time.Duration `env:"KEYS_MAX_AGE" default:"24h" min:"1s" max:"8760h" help:"How long the last keys are used while the issuer does not respond."`
	Connection
}

// Connection configures how one outside system is reached.
type Connection struct {
	CAFile  string        `env:"CA_FILE" format:"path" help:"PEM file with the certificate authorities of this connection. Empty: those of the system."`
	Proxy   URL           `env:"PROXY" help:"HTTP proxy of this connection. Quern ignores HTTP_PROXY and similar variables."`
	Timeout time.Duration `env:"TIMEOUT" default:"5s" min:"100ms" max:"10m" help:"Longest duration of one request on this connection."`
}

// Token limits the lifetime of API tokens.
type Token struct {
	DefaultLifetime time.Duration `env:"DEFAULT_LIFETIME" default:"2160h" min:"1s" max:"87600h" help:"Lifetime of an API token created without expiresAt."`
	MaxLifetime     time.Duration `env:"MAX_LIFETIME" default:"8760h" min:"1s" max:"87600h" help:"Longest lifetime of an API token."`
}

// Log configures log lines.
type Log struct {
	Level  string `env:"LEVEL" default:"info" oneof:"debug info warn error" help:"Lowest level that is written."`
	Format string `env:"FORMAT" default:"json" oneof:"json text" help:"Format of log lines."`
}
