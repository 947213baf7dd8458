# The command line, the server and the client of a shared index; without what training takes.
#     docker build -t treecaps .
#     docker run --rm -p 127.0.0.1:8000:8000 treecaps
#     docker run --rm -i treecaps classify - < program.c
FROM python:3.11-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev
COPY . /treecaps
# The virtual environment has no pip: what is installed stays what it is.
RUN python -m venv --without-pip /opt/treecaps \
    && pip --python /opt/treecaps/bin/python install --no-cache-dir \
        -c /treecaps/constraints.txt '/treecaps[postgres,serve]'

FROM python:3.11-slim
COPY --from=build /opt/treecaps /opt/treecaps
ENV PATH=/opt/treecaps/bin:$PATH PYTHONDONTWRITEBYTECODE=1
RUN useradd --uid 10001 --create-home treecaps
USER 10001
WORKDIR /home/treecaps
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD \
    ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["treecaps"]
CMD ["serve", "--host", "0.0.0.0"]
