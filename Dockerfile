# A small image with the binary that `make tuned` makes.
#
#   docker build -t cadenza .
#   docker run -p 7833:7833 -p 8088:8088 -v cadenza-data:/data cadenza
#
# Two stages on the same Debian: the first has compilers, the second only the shared libraries that
# the binary asks for, found by tools/runtime-packages instead of a list that would grow old.
FROM debian:12-slim AS build
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends make
WORKDIR /cadenza
COPY tools/setup tools/setup
RUN tools/setup build
COPY . .
RUN make tuned \
    && strip -o /cadenza-server build/tuned/bin/cadenza \
    && tools/runtime-packages build/tuned/bin/cadenza > /runtime-packages

FROM debian:12-slim
COPY --from=build /runtime-packages /runtime-packages
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends $(cat /runtime-packages) \
    && rm -rf /var/lib/apt/lists/* /runtime-packages \
    && useradd --system --uid 7833 --home-dir /data --shell /usr/sbin/nologin cadenza \
    && install -d -o cadenza -g cadenza /data
COPY --from=build /cadenza-server /usr/local/bin/cadenza
USER cadenza
WORKDIR /data
VOLUME /data
EXPOSE 7833 8088
# The image has no HTTP client; bash can ask one question itself.
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s CMD ["bash", "-c", \
    "exec 3<>/dev/tcp/127.0.0.1/8088 && printf 'GET /healthz HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n' >&3 && read -r line <&3 && [[ $line == *' 200 '* ]]"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["cadenza", "server", "--data", "/data", "--grpc", "0.0.0.0:7833", "--http", "0.0.0.0:8088"]
