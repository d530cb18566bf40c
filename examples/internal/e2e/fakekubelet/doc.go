// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command fakekubelet stands in for a kubelet in tests of the agent: a real process that loads a real
// KubeletConfiguration, serves /healthz where it says, and ends badly where a kubelet would.
//
//	fakekubelet --config FILE [--kubeconfig FILE --node-name NAME --seen FILE]
//
// Like a kubelet, it exits with status 1 on a config that it can't load and on a feature gate that it doesn't know.
// The gates that it knows make it misbehave: ExitSoon ends it with status 255 after it was asked for its health a
// few times, Sick makes /healthz answer 500, Stubborn makes it ignore SIGTERM, DieWithoutFile ends it where
// tlsCertFile is missing, NoRuntime where nothing listens on containerRuntimeEndpoint. /config answers with the
// bytes that it loaded.
//
// With --root-dir it keeps the state of its CPU and memory managers there as a kubelet does: once written under one
// policy, it exits under another. PoisonState has it write a file that no start without that gate survives, which
// the agent knows nothing of.
//
// It exits with status 1, and logs the cause as a kubelet does, where a certificate file of its config is missing, or
// where containerRuntimeEndpoint is the address of a Unix socket that nothing answers.
//
// With --seen it looks at its Node before it does anything else, as a kubelet could, and adds a line of JSON to
// that file: the config that it was given and the ConfigOK condition that it found. See package seen.
package main
