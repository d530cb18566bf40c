// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

// A harm is a config that passes for one, and what it does to a node. In the config, NONE stands for a path where
// nothing is, GARBAGE for a file that holds no such thing, PORT and HEALTHZ for the kubelet's own ports.
type harm struct{ config, does string }

// harms are configs with which a kubelet does not run, each for another reason. They are listed in
// docs/harmful-configs-tested.md.
func harms() []harm {
	return []harm{
		{"authentication: {x509: {clientCAFile: NONE}}", "ends at the start: the file is missing"},
		{"authentication: {x509: {clientCAFile: GARBAGE}}", "ends at the start: the file holds no certificate"},
		{"tlsCertFile: GARBAGE", "ends at the start: the file holds no certificate"},
		{"tlsCertFile: /", "ends at the start: it is a directory"},
		{"tlsPrivateKeyFile: NONE", "ends at the start: the file is missing"},
		{"tlsPrivateKeyFile: GARBAGE", "ends at the start: the file holds no key"},
		{"tlsMinVersion: VersionTLS9", "ends at the start: no such version"},
		{"tlsCipherSuites: [TLS_OWN]", "ends at the start: no such suite"},
		{"authorization: {mode: Everybody}", "ends at the start: no such mode"},
		{"cgroupRoot: /belay/none", "ends at the start: no such cgroup"},
		{"cgroupRoot: ../..", "answers as healthy, then ends: no such cgroup"},
		{"cgroupDriver: systemd", "ends at the start: the cgroups of the node have other names"},
		{"{enforceNodeAllocatable: [pods, system-reserved], systemReservedCgroup: /belay-none, systemReserved: {cpu: 100m}}",
			"answers as healthy, then ends: no such cgroup"},
		{"{enforceNodeAllocatable: [pods, kube-reserved], kubeReservedCgroup: /belay-none, kubeReserved: {cpu: 100m}}",
			"answers as healthy, then ends: no such cgroup"},
		{"enforceNodeAllocatable: [kube-reserved]", "ends at the start: kubeReservedCgroup is missing"},
		{"enforceNodeAllocatable: [everything]", "ends at the start: no such limit"},
		{"{enforceNodeAllocatable: [pods], cgroupsPerQOS: false}", "ends at the start: the fields exclude each other"},
		{"port: HEALTHZ", "ends: two servers want one port"},
		{"port: 70000", "ends at the start: no such port"},
		{"readOnlyPort: PORT", "ends: two servers want one port"},
		{"address: 203.0.113.1", "ends: the machine does not have the address"},
		{"address: nowhere", "ends: no such address"},
		{"memoryManagerPolicy: Static", "ends at the start: no memory is reserved"},
		{"memoryManagerPolicy: Most", "ends at the start: no such policy"},
		{
			"{memoryManagerPolicy: Static, reservedMemory: [{numaNode: 9, limits: {memory: 101Mi}}]}",
			"ends at the start: no such NUMA node",
		},
		{"cpuManagerPolicy: dynamic", "ends at the start: no such policy"},
		{
			"{cpuManagerPolicy: static, reservedSystemCPUs: '0', cpuManagerPolicyOptions: {none: 'true'}}",
			"ends at the start: no such option",
		},
		{"{cpuManagerPolicy: static, reservedSystemCPUs: 0-4095}", "ends at the start: the machine has fewer CPUs"},
		{"reservedSystemCPUs: a-b", "ends at the start: no set of CPUs"},
		{"topologyManagerPolicy: everywhere", "ends at the start: no such policy"},
		{"topologyManagerScope: machine", "ends at the start: no such scope"},
		{"featureGates: {SidecarContainers: false}", "ends at the start: the gate is locked"},
		{
			"featureGates: {PodLevelResources: false, PodLevelResourceManagers: true}",
			"ends at the start: one gate needs the other",
		},
		{"evictionHard: {moon.available: '1'}", "ends at the start: no such signal"},
		{"evictionHard: {memory.available: lots}", "ends at the start: no quantity"},
		{"evictionHard: {memory.available: -5%}", "ends at the start: below zero"},
		{"evictionHard: {memory.available: 1000Ti}", "ends: more than the machine has"},
		{"evictionSoft: {memory.available: 5%}", "ends at the start: evictionSoftGracePeriod is missing"},
		{"evictionMinimumReclaim: {memory.available: some}", "ends at the start: no quantity"},
		{
			"{systemReserved: {cpu: '1000'}, enforceNodeAllocatable: [pods]}",
			"answers as healthy, then ends: more than the machine has",
		},
		{
			"{kubeReserved: {memory: 900Ti}, enforceNodeAllocatable: [pods]}",
			"answers as healthy, then ends: more than the machine has",
		},
		{"kubeReserved: {love: '1'}", "ends at the start: no such resource"},
		{"systemReserved: {memory: -1Gi}", "ends at the start: below zero"},
		{"qosReserved: {memory: 200%}", "ends at the start: more than all"},
		{"containerRuntimeEndpoint: unix://NONE", "ends at the start: no runtime answers there"},
		{"containerRuntimeEndpoint: ftp://runtime", "ends at the start: no such protocol"},
		{"imageServiceEndpoint: unix://NONE", "ends at the start: no runtime answers there"},
		{"runtimeRequestTimeout: 1ns", "ends at the start: no runtime is so fast"},
		{"hairpinMode: loop", "ends at the start: no such mode"},
		{
			"{imageGCHighThresholdPercent: 10, imageGCLowThresholdPercent: 90}",
			"ends at the start: the thresholds are in the wrong order",
		},
		{"imageMinimumGCAge: -1h", "ends at the start: below zero"},
		{"{imageMinimumGCAge: 1h, imageMaximumGCAge: 1s}", "ends at the start: the ages are in the wrong order"},
		{"maxOpenFiles: -1", "ends at the start: below zero"},
		{"maxOpenFiles: 20", "ends: it can't open what it needs"},
		{"maxPods: -1", "ends at the start: below zero"},
		{"podsPerCore: -1", "ends at the start: below zero"},
		{"oomScoreAdj: -2000", "ends at the start: out of range"},
		{"kubeAPIQPS: -1", "ends at the start: below zero"},
		{"kubeAPIBurst: -1", "ends at the start: below zero"},
		{"eventRecordQPS: -1", "ends at the start: below zero"},
		{"registryPullQPS: -1", "ends at the start: below zero"},
		{
			"{shutdownGracePeriod: 5s, shutdownGracePeriodCriticalPods: 10s}",
			"ends at the start: the part is longer than the whole",
		},
		{"shutdownGracePeriod: 1ms", "ends at the start: less than a second"},
		{"{shutdownGracePeriod: 10s, shutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: 5}]}",
			"ends at the start: the fields exclude each other"},
		{"logging: {format: poem}", "ends at the start: no such format"},
		{"logging: {flushFrequency: -5s}", "ends at the start: below zero"},
		{"logging: {vmodule: [{filePattern: 'x=,', verbosity: 3}]}", "ends at the start: no pattern"},
		{"tracing: {samplingRatePerMillion: 2000000}", "ends at the start: more than all"},
		{"tracing: {endpoint: 'none://'}", "ends at the start: no such protocol"},
		{"memorySwap: {swapBehavior: Endless}", "ends at the start: no such behaviour"},
		{"registerWithTaints: [{key: a b, effect: Foo}]", "ends at the start: no taint"},
		{"podLogsDir: /proc/belay", "ends: the directory can't be made"},
		{"{serializeImagePulls: true, maxParallelImagePulls: 5}", "ends at the start: the fields exclude each other"},
		{"nodeLeaseDurationSeconds: -1", "ends at the start: below zero"},
		{"syncFrequency: -1s", "ends at the start: below zero"},
		{"cpuCFSQuotaPeriod: 10s", "ends at the start: out of range"},
		{"allowedUnsafeSysctls: [a b*c]", "ends at the start: no sysctl"},
		{"containerLogMaxSize: lots", "ends at the start: no quantity"},
		{"containerLogMaxFiles: 1", "ends at the start: one file can't be rotated"},
		{"containerLogMaxWorkers: 0", "ends at the start: no worker"},
		{
			"{featureGates: {KubeletCrashLoopBackOffMax: true}, crashLoopBackOff: {maxContainerRestartPeriod: 1h}}",
			"ends at the start: out of range",
		},
		{"userNamespaces: {idsPerPod: 1}", "ends at the start: out of range"},
		{"userNamespaces: {idsPerPod: 4294901760}", "ends at the start: the machine has fewer"},
		{"imagePullCredentialsVerificationPolicy: Sometimes", "ends at the start: no such policy"},
		{"{featureGates: {MemoryQoS: true}, memoryThrottlingFactor: 2}", "ends at the start: more than all"},
		{"configMapAndSecretChangeDetectionStrategy: Guess", "ends at the start: no such strategy"},
		{"nodeStatusMaxImages: -2", "ends at the start: below zero"},
		{"iptablesMasqueradeBit: 99", "ends at the start: no such bit"},
	}
}

// uncovered are configs that harm a node whose kubelet runs and answers for its health: nothing here tests what
// becomes of them.
func uncovered() []harm {
	return []harm{
		{
			"healthzBindAddress: 203.0.113.1",
			"runs, and never answers for its health: the node says True until the probe's deadline",
		},
		{"{staticPodURL: 'http://127.0.0.1:1/'}", "runs, and waits for its pods for ever"},
		{"port: 0", "runs, and no log, exec or port-forward reaches it"},
		{"enableServer: false", "runs, and no log, exec or port-forward reaches it"},
		{"registerNode: false", "runs, and a Node that is deleted does not come back"},
		{"resolvConf: NONE", "runs, and starts no pod"},
		{"clusterDNS: [nowhere]", "runs, and pods find no name"},
		{"volumePluginDir: /proc/belay", "runs, and finds no FlexVolume"},
		{"evictionHard: {nodefs.inodesFree: 99%}", "runs, and evicts all pods"},
		{"evictionHard: {nodefs.available: 99%}", "runs, and evicts all pods"},
		{"evictionHard: {pid.available: 100%}", "runs, and evicts all pods"},
		{"evictionMaxPodGracePeriod: -1", "runs, and kills evicted pods at once"},
		{"nodeStatusUpdateFrequency: 24h", "runs, and its conditions are a day old"},
		{"nodeLeaseDurationSeconds: 86400", "runs, and is found dead a day late"},
		{"contentType: text/garbage", "runs, and the API server does not understand it"},
		{
			"{serverTLSBootstrap: true, tlsCertFile: '', tlsPrivateKeyFile: ''}",
			"runs, and has no certificate until one is approved",
		},
		{"{logging: {verbosity: 10}}", "runs, and fills the disk with its log"},
		{"{localStorageCapacityIsolation: false}", "runs, and no pod's disk use is limited"},
	}
}
