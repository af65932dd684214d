#!/usr/bin/env bash
# slurm_here.sh start FOLDER [NODES [CPUS]] | stop FOLDER: a Slurm of several nodes (3 with 2 CPUs unless told) on this
# machine alone, for tests.  After start, SLURM_CONF=FOLDER/slurm.conf makes Slurm's commands speak to it.
#
# One munged, one slurmctld, and a slurmd per node, each with a host name and System V memory of its own, as MPI libraries
# need to tell nodes apart.  All files, sockets and process numbers lie in FOLDER; stop ends the processes whose numbers are
# there, and no others.  Needs root and Debian's slurm-wlm and munge; exit status 77 and the reason where that is not so.
# munged is told to bear a folder that only root can enter.  Ports are chosen by the number of this process and must be free.
set -euo pipefail

no() {
    echo "no Slurm here: $*"
    exit 77
}
# What was started ends again.
give_up() {
    stop
    no "$@"
}
[ $# -ge 2 ] || { sed -n '2,3s/^# //p' "$0"; exit 2; }
what=$1 folder=$2 nodes=${3:-3} cpus=${4:-2}

# numbers: process numbers of what was started, the daemons of nodes first
numbers() {
    cat "$folder"/node*.pid "$folder"/slurmctld.pid "$folder"/munged.pid 2>/dev/null || true
}
# is_ours PID: it is a daemon that was started with this folder
is_ours() {
    tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline" | grep -qF -- "$folder/"
}

stop() {
    local pid job k
    [ -d "$folder" ] || return 0
    export SLURM_CONF=$folder/slurm.conf
    for job in $(squeue --noheader --format=%A 2>/dev/null || true); do scancel --full --signal=KILL "$job" 2>/dev/null || true; done
    for job in $(squeue --noheader --format=%A 2>/dev/null || true); do scancel "$job" 2>/dev/null || true; done
    for pid in $(numbers); do
        ! is_ours "$pid" || kill "$pid" 2>/dev/null || true
    done
    for pid in $(numbers); do
        for k in $(seq 100); do
            is_ours "$pid" || break
            sleep 0.05
        done
        ! is_ours "$pid" || kill -KILL "$pid" 2>/dev/null || true
    done
    rm -f "$folder"/*.pid
}

# The controller's address is the machine's own, and so are the nodes'; they differ by port.
configure() {
    local i port=$((30000 + $$ % 2000 * 10))
    head -c 1024 /dev/urandom >"$folder/munge.key"
    chmod 400 "$folder/munge.key"
    cat >"$folder/slurm.conf" <<END
ClusterName=here
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# How long credentials count: so long a job that is put back has to wait.
AuthInfo=socket=$folder/munge.socket,cred_expire=5
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool-%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/%n.log
TmpFS=$folder/tmp-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
SlurmdParameters=config_overrides
ReturnToService=2
CompleteWait=0
KillWait=30
PartitionName=main Nodes=ALL Default=YES MaxTime=1-00:00:00 State=UP
END
    for i in $(seq "$nodes"); do
        mkdir -p "$folder/spool-node$i" "$folder/tmp-node$i"
        echo "NodeName=node$i NodeHostname=node$i NodeAddr=127.0.0.1 Port=$((port + i)) CPUs=$cpus State=UNKNOWN" >>"$folder/slurm.conf"
    done
    # Named, so that nobody looks for control groups, which a container may not have.
    echo "CgroupPlugin=cgroup/v1" >"$folder/cgroup.conf"
    { cat /etc/hosts && for i in $(seq "$nodes"); do echo "127.0.0.1 node$i"; done; } >"$folder/hosts"
}

start() {
    local i k
    [ "$(id -u)" = 0 ] || no "its daemons need root"
    for k in munged slurmctld slurmd sbatch srun; do
        command -v "$k" >/dev/null || no "no $k (Debian: slurm-wlm munge)"
    done
    unshare --uts --ipc --mount true 2>/dev/null || no "nodes of their own name cannot be made in this container"
    mkdir -p "$folder/state"
    folder=$(readlink -f "$folder")
    chmod 755 "$folder"
    configure
    export SLURM_CONF=$folder/slurm.conf
    munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" \
        --log-file="$folder/munged.log" --seed-file="$folder/munge.seed" --num-threads=2 || no "munged does not start"
    slurmctld -f "$folder/slurm.conf" || give_up "slurmctld does not start"
    for i in $(seq "$nodes"); do
        unshare --uts --ipc --mount --propagation slave sh -c \
            'hostname "$1" && mount --bind "$2/hosts" /etc/hosts && exec slurmd -N "$1" -f "$2/slurm.conf"' sh "node$i" "$folder" ||
            give_up "slurmd does not start"
    done
    for k in $(seq 300); do
        [ "$(sinfo --noheader --Node --format=%T 2>/dev/null | grep -c '^idle$')" -lt "$nodes" ] || return 0
        sleep 0.1
    done
    give_up "its nodes did not come up in 30 s: $(tail -2 "$folder/slurmctld.log")"
}

case $what in
start) start ;;
stop) stop ;;
*) sed -n '2,3s/^# //p' "$0" && exit 2 ;;
esac
