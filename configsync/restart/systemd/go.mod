// A module of its own: go-systemd and D-Bus are for those alone who import it.
module github.com/belayproject/belay/configsync/restart/systemd

go 1.25.0

require (
	github.com/belayproject/belay v0.1.0
	github.com/coreos/go-systemd/v22 v22.6.0
	github.com/google/go-cmp v0.7.0
)

require (
	github.com/godbus/dbus/v5 v5.1.0 // indirect
	go.yaml.in/yaml/v2 v2.4.2 // indirect
	go.yaml.in/yaml/v3 v3.0.4 // indirect
	golang.org/x/sys v0.31.0 // indirect
	sigs.k8s.io/yaml v1.6.0 // indirect
)

replace github.com/belayproject/belay => ../../../
